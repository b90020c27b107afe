package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.function.IntFunction;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests clients whose HTTP/2 frames cost the server more than the client. Other clients are not delayed, and the log
 * stays small.
 */
final class Http2FloodIT {
    private static final int CONNECTIONS = 2;
    private static final int FRAMES = 100_000;
    private static final int STEP = 500;
    private static final Duration MAX_DURATION = Duration.ofSeconds(5);

    @RegisterExtension
    static final Victim victim = Victim.with();

    /** The bytes that are sent once, and those that are sent repeatedly, by a growing number. */
    static Stream<Arguments> floods() {
        byte[] nothing = new byte[0];
        byte[] message = InferMessage.framed(InferMessage.request(Models.ECHO, Tensor.floats("flood", 1)));
        return Stream.of(
                flood(
                        "rapid resets",
                        nothing,
                        i -> RawHttp.concat(Frames.call(stream(i), Frames.INFER), Frames.reset(stream(i)))),
                flood(
                        "rapid resets of whole calls",
                        nothing,
                        i -> RawHttp.concat(
                                Frames.wholeCall(stream(i), Frames.INFER, message), Frames.reset(stream(i)))),
                flood(
                        "resets that the server is led to",
                        nothing,
                        i -> RawHttp.concat(Frames.call(stream(i), Frames.INFER), Frames.windowUpdate(stream(i), 0))),
                flood("calls of unknown methods", nothing, i -> Frames.wholeCall(stream(i), "/a/b", nothing)),
                flood(
                        "calls without a method",
                        nothing,
                        i -> Frames.frame(Frames.HEADERS, 5, stream(i), Hpack.encode("a", "b"))),
                flood(
                        "CONTINUATION without end",
                        Frames.frame(Frames.HEADERS, 0, 1, Frames.callHeaders(Frames.INFER)),
                        _ -> Frames.frame(Frames.CONTINUATION, 0, 1, Hpack.encode("x-more", "more"))),
                flood(
                        "empty CONTINUATION",
                        Frames.frame(Frames.HEADERS, 0, 1, Frames.callHeaders(Frames.INFER)),
                        _ -> Frames.frame(Frames.CONTINUATION, 0, 1, nothing)),
                flood("SETTINGS", nothing, _ -> Frames.settings(Frames.INITIAL_WINDOW_SIZE, 65_535)),
                flood("empty SETTINGS", nothing, _ -> Frames.settings()),
                flood("PING", nothing, Frames::ping),
                flood("PRIORITY", nothing, i -> Frames.frame(Frames.PRIORITY, 0, stream(i), new byte[5])),
                flood("frames of an unknown kind", nothing, _ -> Frames.frame(99, 0, 0, new byte[16])),
                flood("WINDOW_UPDATE of 0", Frames.call(1, Frames.INFER), _ -> Frames.windowUpdate(0, 0)),
                flood("WINDOW_UPDATE of 1", Frames.call(1, Frames.INFER), _ -> Frames.windowUpdate(1, 1)),
                flood("RST_STREAM of streams that are closed", nothing, _ -> Frames.reset(1)),
                flood("empty DATA", Frames.call(1, Frames.INFER), _ -> Frames.data(1, false, nothing)),
                flood(
                        "DATA of padding alone",
                        Frames.call(1, Frames.INFER),
                        _ -> Frames.frame(Frames.DATA, Frames.PADDED, 1, new byte[] {0})),
                flood("DATA of a byte", Frames.call(1, Frames.INFER), _ -> Frames.data(1, false, new byte[1])),
                flood("GOAWAY", nothing, _ -> Frames.frame(Frames.GOAWAY, 0, 0, new byte[8])),
                flood("large headers, remembered and repeated", hpackBomb(0), i -> hpackBomb(i + 1)));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("floods")
    void leavesOthersAlone(String name, byte[] first, IntFunction<byte[]> each) throws Exception {
        victim.attack(() -> ConcurrentClients.run(CONNECTIONS, () -> send(first, each)));
    }

    @Test
    void theHttpPortDoesNotSpeakIt() throws Exception {
        victim.attack(() -> {
            try (RawHttp connection = RawHttp.connect(victim.server().http())) {
                connection.send(Frames.preface(65_535));
                assertThat(connection.read().status()).isBetween(400, 505);
                connection.awaitEnd();
            }
        });
    }

    /**
     * Sends until all bytes are sent, the server closes the connection, or the time is over. Reads what the server
     * sends.
     */
    private static int send(byte[] first, IntFunction<byte[]> each) throws IOException {
        long end = System.nanoTime() + MAX_DURATION.toNanos();
        try (RawHttp2 connection = RawHttp2.connect(victim.server().grpc())) {
            Thread reader = Thread.startVirtualThread(connection::awaitEnd);
            int sent = 0;
            try {
                connection.send(first);
                while (sent < FRAMES && System.nanoTime() < end) {
                    ByteArrayOutputStream frames = new ByteArrayOutputStream();
                    for (int i = 0; i < STEP; i++) {
                        frames.writeBytes(each.apply(sent++));
                    }
                    connection.send(frames.toByteArray());
                }
                Await.pause(Duration.ofMillis(300));
            } catch (IOException e) {
                // closed by the server
            }
            connection.reset();
            reader.interrupt();
            return sent;
        }
    }

    private static Arguments flood(String name, byte[] first, IntFunction<byte[]> each) {
        return Arguments.of(name, first, each);
    }

    private static int stream(int number) {
        return 2 * number + 1;
    }

    /** A header of 4 KB that enters the table, or a hundred times its number there. */
    private static byte[] hpackBomb(int number) {
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        block.writeBytes(Frames.callHeaders(Frames.INFER));
        if (number == 0) {
            block.write(0x40); // literal that is remembered, new name
            block.write(1);
            block.write('a');
            Hpack.integer(block, 0, 7, 4_000);
            block.writeBytes(new byte[4_000]);
        } else {
            for (int i = 0; i < 1_000; i++) {
                block.write(0x80 | 62);
            }
        }
        return Frames.frame(Frames.HEADERS, Frames.END_HEADERS, stream(number), block.toByteArray());
    }
}
