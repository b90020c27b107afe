package dev.nereid.distribution.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.OptionalLong;
import java.util.regex.Pattern;

/** Reads what the kernel keeps of connections on this machine. Linux only. Static functions only. */
public final class SocketQueues {
    private static final List<Path> TABLES = List.of(Path.of("/proc/self/net/tcp"), Path.of("/proc/self/net/tcp6"));
    private static final int HEX = 16;
    private static final Pattern SPACE = Pattern.compile("\\s+");
    private static final Pattern COLON = Pattern.compile(":");

    private SocketQueues() {}

    /**
     * Returns the bytes that one side has written and the other has not read.
     *
     * @return empty if the kernel does not tell
     */
    public static OptionalLong unread(int writerPort, int readerPort) throws IOException {
        OptionalLong written = queue(writerPort, readerPort, 0);
        OptionalLong arrived = queue(readerPort, writerPort, 1);
        return written.isEmpty() || arrived.isEmpty()
                ? OptionalLong.empty()
                : OptionalLong.of(written.getAsLong() + arrived.getAsLong());
    }

    /** Returns the size of a queue of the socket at the local port: 0 for the one to send, 1 for the one received. */
    private static OptionalLong queue(int localPort, int remotePort, int which) throws IOException {
        for (Path table : TABLES) {
            if (!Files.exists(table)) {
                continue;
            }
            for (String line : Files.readAllLines(table)) {
                String[] fields = SPACE.split(line.strip(), -1);
                if (fields[1].endsWith(port(localPort)) && fields[2].endsWith(port(remotePort))) {
                    return OptionalLong.of(Long.parseLong(COLON.split(fields[4], -1)[which], HEX));
                }
            }
        }
        return OptionalLong.empty();
    }

    private static String port(int number) {
        return String.format(Locale.ROOT, ":%04X", number);
    }
}
