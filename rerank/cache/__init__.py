"""Score cache on disk: arrays by content, which do not depend on the feature weights."""

from rerank.cache.folder import Info as Info
from rerank.cache.folder import cache_folder as cache_folder
from rerank.cache.folder import cache_limit as cache_limit
from rerank.cache.folder import clear as clear
from rerank.cache.folder import info as info
from rerank.cache.store import Cache as Cache
