package dev.nereid.backend.python.process;

import dev.nereid.backend.python.posix.SocketCalls;
import java.io.IOException;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * A socket that listens for the start of one process. Its name is abstract: it is in no directory, so that nothing is left
 * whenever server or process is killed. Only processes of the same user are accepted. For one thread.
 */
final class StartSocket implements AutoCloseable {
    private static final String PREFIX = "nereid-python-";
    private static final int RANDOM_BYTES = 16;

    private final String name;
    private final int socket;

    private StartSocket(String name, int socket) {
        this.name = name;
        this.socket = socket;
    }

    /** Creates the socket with a name that nobody can guess; fails, for instance, without descriptors. */
    static StartSocket open() throws IOException {
        String name = PREFIX + randomText();
        return new StartSocket(name, SocketCalls.listen(name));
    }

    /** Returns a random text of 32 characters. */
    static String randomText() {
        byte[] random = new byte[RANDOM_BYTES];
        new SecureRandom().nextBytes(random);
        return HexFormat.of().formatHex(random);
    }

    String address() {
        return "@" + name;
    }

    /** Accepts a connection, or returns -1 if none comes in time. */
    int accept(int millis) throws IOException {
        return SocketCalls.accept(socket, millis);
    }

    @Override
    public void close() {
        SocketCalls.close(socket);
    }
}
