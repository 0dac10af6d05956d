import os

os.mkdir("model")
os.mkfifo("model/config.json")
