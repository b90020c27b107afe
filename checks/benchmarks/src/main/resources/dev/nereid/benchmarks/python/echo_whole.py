"""Returns messages of one size, each when it is whole."""

import socket
import sys

connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect("\0" + sys.argv[1])
buffer = memoryview(bytearray(int(sys.argv[2])))
while True:
    filled = 0
    while filled < len(buffer):
        received = connection.recv_into(buffer[filled:])
        if not received:
            sys.exit()
        filled += received
    connection.sendall(buffer)
