"""A small NBD client for tests that must know exactly which request was answered when."""

import socket
import struct

READ, WRITE, DISCONNECT, FLUSH, TRIM, WRITE_ZEROES = 0, 1, 2, 3, 4, 6
FUA = 1


class Client:
    """One connection, one request at a time."""

    def __init__(self, path, export=""):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        magic, have_option, _ = struct.unpack(">QQH", self._take(18))
        assert magic == 0x4E42444D41474943 and have_option == 0x49484156454F5054
        # Fixed newstyle, no padding; then the export by its name, which is empty of the default one.
        name = export.encode()
        self.socket.sendall(struct.pack(">I", 3) + struct.pack(">QII", have_option, 1, len(name)) + name)
        self.size, self.flags = struct.unpack(">QH", self._take(10))
        self.cookie = 0

    def _take(self, count):
        data = bytearray()
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the server closed the connection")
            data += part
        return bytes(data)

    def _send(self, command, offset, length, data, flags):
        self.cookie += 1
        header = struct.pack(">IHHQQI", 0x25609513, flags, command, self.cookie, offset, length)
        self.socket.sendall(header + data)

    def request(self, command, offset=0, length=0, data=b"", flags=0):
        """Sends a request and waits for its answer; the data of a read."""
        self._send(command, offset, length, data, flags)
        magic, error, cookie = struct.unpack(">IIQ", self._take(16))
        assert magic == 0x67446698 and cookie == self.cookie
        if error:
            raise OSError(error, f"NBD command {command} at {offset}")
        return self._take(length) if command == READ else b""

    def read(self, offset, length):
        return self.request(READ, offset, length)

    def write(self, offset, data, fua=False):
        self.request(WRITE, offset, len(data), data, FUA if fua else 0)

    def trim(self, offset, length):
        self.request(TRIM, offset, length)

    def zero(self, offset, length):
        self.request(WRITE_ZEROES, offset, length)

    def flush(self):
        self.request(FLUSH)

    def close(self):
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, DISCONNECT, 0, 0, 0))
        self.socket.close()


class Pipeline(Client):
    """One connection, many requests at a time. `in_flight` has those that are sent, at least in part, and not
    answered: by cookie, the length of the data that a read expects and what the caller keeps with the request."""

    def __init__(self, path):
        super().__init__(path)
        self.in_flight = {}

    def send(self, kept, command, offset=0, length=0, data=b"", flags=0):
        """Sends a request and waits for no answer."""
        self.in_flight[self.cookie + 1] = (length if command == READ else 0, kept)
        self._send(command, offset, length, data, flags)

    def answer(self):
        """Waits for the next answer, of whichever request: what was kept with it and the data of a read. The
        answers that a server has sent before it died are there still; after them, ConnectionError."""
        magic, error, cookie = struct.unpack(">IIQ", self._take(16))
        assert magic == 0x67446698
        assert cookie in self.in_flight, f"an answer to {cookie}, which is not in flight"
        length, kept = self.in_flight[cookie]
        if error:
            raise OSError(error, f"the NBD request {kept}")
        data = self._take(length)
        del self.in_flight[cookie]
        return kept, data
