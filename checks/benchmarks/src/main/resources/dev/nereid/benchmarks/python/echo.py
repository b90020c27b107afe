"""Returns what it receives, as much as there is at a time."""

import socket
import sys

connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect("\0" + sys.argv[1])
buffer = memoryview(bytearray(1 << 16))
while True:
    received = connection.recv_into(buffer)
    if not received:
        break
    connection.sendall(buffer[:received])
