"""Copies the first half of a file in memory to the second one for each message, and returns the message."""

import mmap
import socket
import sys

size = int(sys.argv[2])
with open(sys.argv[3], "r+b") as file:
    memory = memoryview(mmap.mmap(file.fileno(), 2 * size))
source, target = memory[:size], memory[size:]
connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect("\0" + sys.argv[1])
buffer = memoryview(bytearray(1 << 16))
while True:
    received = connection.recv_into(buffer)
    if not received:
        break
    target[:] = source
    connection.sendall(buffer[:received])
