package dev.nereid.backend.python.process;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeClock;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

class OutputReaderTest {
    private static final Duration LONG = Duration.ofSeconds(60);

    private final FakeClock clock = new FakeClock();
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final Script script = new Script();
    private final OutputReader reader = start(script, lines::add);

    @AfterEach
    void closes() throws Exception {
        reader.close();
        script.end();
        assertThat(reader.awaitEnd(LONG)).isTrue();
    }

    private OutputReader start(InputStream output, Consumer<String> consumer) {
        return OutputReader.start(output, "output/m_0", consumer, clock);
    }

    /** Reads a whole output. */
    private List<String> read(InputStream output) throws InterruptedException {
        Queue<String> read = new ConcurrentLinkedQueue<>();
        try (OutputReader whole = start(output, read::add)) {
            assertThat(whole.awaitEnd(LONG)).isTrue();
        }
        return List.copyOf(read);
    }

    private List<String> read(String output) throws InterruptedException {
        return read(new ByteArrayInputStream(output.getBytes(UTF_8)));
    }

    private String next() throws InterruptedException {
        String line = lines.poll(60, TimeUnit.SECONDS);
        assertThat(line).isNotNull();
        return line;
    }

    @Test
    void passesLinesOnTheNamedThread() throws Exception {
        Queue<String> threads = new ConcurrentLinkedQueue<>();
        try (OutputReader named = start(
                new ByteArrayInputStream("a\n".getBytes(UTF_8)),
                _ -> threads.add(Thread.currentThread().getName()
                        + Thread.currentThread().isDaemon()))) {
            assertThat(named.awaitEnd(LONG)).isTrue();
        }

        assertThat(threads).containsExactly("output/m_0true");
    }

    @Test
    void passesLinesOfUtf8() throws Exception {
        assertThat(read("größe\r\n\n  \n日本\ttab\nno end")).containsExactly("größe", "日本\ttab", "no end");
    }

    @Test
    void joinsWhatArrivesInParts() throws Exception {
        byte[] text = "日本".getBytes(UTF_8);
        script.add(new byte[] {text[0], text[1]});
        script.add(new byte[] {text[2], text[3], text[4]});
        script.add(new byte[] {text[5], '\r'});
        script.add(new byte[] {'\n'});

        assertThat(next()).isEqualTo("日本");
    }

    @Test
    void replacesAndEscapesWhatIsNoText() throws Exception {
        byte[] bytes = {'a', (byte) 0xff, 0, 0x1b, '[', '3', '1', 'm', 0x7f, '\n'};

        assertThat(read(new ByteArrayInputStream(bytes))).containsExactly("a\ufffd\\x00\\x1b[31m\\x7f");
        assertThat(read("a\u2028b\u202ec\u0085d")).containsExactly("a\\u2028b\\u202ec\\x85d");
    }

    @Test
    void survivesAnyBytes() throws Exception {
        byte[] bytes = new byte[1 << 20];
        new Random(7).nextBytes(bytes);

        List<String> read = read(new ByteArrayInputStream(bytes));

        assertThat(read).isNotEmpty().allSatisfy(line -> assertThat(line).doesNotContain("\n", "\r", "\0"));
    }

    @Test
    void cutsALongLineBetweenCharacters() throws Exception {
        List<String> read = read("x".repeat(8191) + "ü" + "y".repeat(100) + "\nshort\n");

        assertThat(read).containsExactly("x".repeat(8191) + " … (102 more bytes)", "short");
    }

    @Tag("slow")
    @Test
    void readsAGigabyteWithoutALineFeed() throws Exception {
        List<String> read = read(new Endless(1L << 30));

        assertThat(read)
                .singleElement()
                .satisfies(line -> assertThat(line)
                        .startsWith("xxx")
                        .endsWith(" … (" + ((1L << 30) - 8192) + " more bytes)")
                        .hasSizeLessThan(9000));
    }

    @Test
    void showsOneUpdateASecondAndTheLast() throws Exception {
        script.add("\r  0%|".getBytes(UTF_8));
        script.add("\r 10%|\r 20%|".getBytes(UTF_8));
        assertThat(next()).isEqualTo("  0%|");
        script.awaitRead();
        clock.advance(Duration.ofSeconds(1));
        script.add("\r 30%|".getBytes(UTF_8));
        assertThat(next()).isEqualTo(" 20%|");
        script.add("\r 40%|\r100%|\nend\n".getBytes(UTF_8));

        assertThat(next()).isEqualTo("100%|");
        assertThat(next()).isEqualTo("end");
        assertThat(reader.lastLines()).containsExactly("100%|", "end");
    }

    @Test
    void cutsAFloodAndCountsIt() throws Exception {
        script.add(numbers(0, 3000));
        for (int i = 0; i < OutputLimit.MAX_LINES; i++) {
            assertThat(next()).isEqualTo("line " + i);
        }
        script.awaitRead();
        clock.advance(Duration.ofSeconds(1));
        script.add(numbers(3000, 3300));

        assertThat(next()).isEqualTo("… 1000 lines (9000 bytes) of output left out");
        for (int i = 3000; i < 3200; i++) {
            assertThat(next()).isEqualTo("line " + i);
        }
        script.end();
        assertThat(next()).isEqualTo("… 100 lines (900 bytes) of output left out");
        assertThat(reader.awaitEnd(LONG)).isTrue();
        assertThat(lines).isEmpty();
        assertThat(reader.lastLines()).hasSize(20).startsWith("line 3280").endsWith("line 3299");
    }

    @Test
    void cutsAFloodOfBytes() throws Exception {
        script.add(("z".repeat(8000) + "\n").repeat(100).getBytes(UTF_8));
        for (int i = 0; i < OutputLimit.MAX_BYTES / 8000; i++) {
            assertThat(next()).hasSize(8000);
        }

        assertThat(next()).isEqualTo("… 35 lines (280000 bytes) of output left out");
    }

    @Test
    void reportsAFloodThatIsOver() throws Exception {
        script.add(numbers(0, OutputLimit.MAX_LINES + 1));
        for (int i = 0; i < OutputLimit.MAX_LINES; i++) {
            assertThat(next()).isEqualTo("line " + i);
        }

        assertThat(next()).isEqualTo("… 1 line (9 bytes) of output left out");
    }

    @Test
    void readsOnWhenTheConsumerThrows() throws Exception {
        Queue<String> read = new ConcurrentLinkedQueue<>();
        try (OutputReader whole = start(new ByteArrayInputStream("a\nb\nc\n".getBytes(UTF_8)), line -> {
            read.add(line);
            Thread.currentThread().interrupt();
            if (line.equals("a")) {
                throw new IllegalStateException(line);
            }
            throw new StackOverflowError(line);
        })) {
            assertThat(whole.awaitEnd(LONG)).isTrue();
            assertThat(whole.lastLines()).containsExactly("a", "b", "c");
        }

        assertThat(read).containsExactly("a", "b", "c");
    }

    @Test
    void keepsTheLastLines() throws Exception {
        script.add(numbers(0, 50));
        script.add(("q".repeat(3000) + "\n\n").getBytes(UTF_8));
        script.awaitRead();

        assertThat(reader.lastLines())
                .hasSize(20)
                .startsWith("line 31")
                .endsWith("q".repeat(1000) + " … (2000 more bytes)");
    }

    @Test
    void endsWhenTheStreamFails() throws Exception {
        script.add("half".getBytes(UTF_8));
        script.fail();

        assertThat(next()).isEqualTo("half");
        assertThat(reader.awaitEnd(LONG)).isTrue();
        assertThat(script.closed.await(60, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void saysThatTheOutputGoesOn() throws Exception {
        assertThat(reader.awaitEnd(Duration.ZERO)).isFalse();
    }

    private static byte[] numbers(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(i -> "line " + i + "\n")
                .collect(joining())
                .getBytes(UTF_8);
    }

    /** Bytes without a line feed. */
    private static final class Endless extends InputStream {
        private long left;

        Endless(long size) {
            left = size;
        }

        @Override
        public int read() {
            throw new UnsupportedOperationException();
        }

        @Override
        public int read(byte[] buffer, int offset, int length) {
            if (left == 0) {
                return -1;
            }
            int count = (int) Math.min(left, length);
            Arrays.fill(buffer, offset, offset + count, (byte) 'x');
            left -= count;
            return count;
        }
    }

    /** A stream that blocks until the test adds bytes. Safe for use by any thread. */
    private static final class Script extends InputStream {
        final CountDownLatch closed = new CountDownLatch(1);

        private final ReentrantLock lock = new ReentrantLock();
        private final Condition changed = lock.newCondition();
        private final Deque<Byte> bytes = new ArrayDeque<>();
        private boolean ended;
        private boolean failed;

        /** {@code true} if the reader wants more than there is, and so has handled all. */
        private boolean hungry;

        void add(byte[] more) {
            change(() -> {
                for (byte one : more) {
                    bytes.add(one);
                }
                hungry = false;
            });
        }

        void end() {
            change(() -> ended = true);
        }

        void fail() {
            change(() -> failed = true);
        }

        /** Waits until all that was added is handled. */
        void awaitRead() throws InterruptedException {
            lock.lock();
            try {
                while (!hungry) {
                    assertThat(changed.await(60, TimeUnit.SECONDS)).isTrue();
                }
            } finally {
                lock.unlock();
            }
        }

        private void change(Runnable action) {
            lock.lock();
            try {
                action.run();
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }

        @Override
        public int read() {
            throw new UnsupportedOperationException();
        }

        @Override
        public int available() {
            lock.lock();
            try {
                if (bytes.isEmpty()) {
                    hungry = true;
                    changed.signalAll();
                }
                return bytes.size();
            } finally {
                lock.unlock();
            }
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            lock.lock();
            try {
                while (bytes.isEmpty()) {
                    hungry = true;
                    changed.signalAll();
                    if (failed) {
                        throw new IOException("failure");
                    }
                    if (ended) {
                        return -1;
                    }
                    changed.awaitUninterruptibly();
                }
                int count = Math.min(length, bytes.size());
                for (int i = 0; i < count; i++) {
                    buffer[offset + i] = bytes.remove();
                }
                return count;
            } finally {
                lock.unlock();
            }
        }

        @Override
        public void close() {
            closed.countDown();
        }
    }
}
