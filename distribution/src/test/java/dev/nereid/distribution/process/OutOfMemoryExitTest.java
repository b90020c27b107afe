package dev.nereid.distribution.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The exit of a process when its memory is exhausted. */
@Timeout(60)
final class OutOfMemoryExitTest {
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();
    private final BlockingQueue<Integer> ends = new LinkedBlockingQueue<>();

    @ParameterizedTest
    @CsvSource({
        "Java heap space, heap",
        "GC overhead limit exceeded, heap",
        "Metaspace, metaspace",
        "Compressed class space, metaspace",
        "unable to create native thread: possibly out of memory, threads"
    })
    void reportsOnceWhatIsExhausted(String message, String resource) {
        OutOfMemoryExit exit = new OutOfMemoryExit(err, ends::add);

        exit.check(new IllegalStateException(new OutOfMemoryError(message)));
        exit.check(new OutOfMemoryError(message));

        assertThat(ends.peek()).isEqualTo(3);
        assertThat(err.toString(StandardCharsets.UTF_8))
                .isEqualTo("nereid: out of memory: " + resource + " exhausted, ends with exit code 3"
                        + " (--exit-on-out-of-memory=false keeps the process, which refuses requests)\n");
    }

    @Test
    void doesNothingIfDisabled() {
        OutOfMemoryExit exit = new OutOfMemoryExit(err, ends::add);
        exit.enable(false);

        exit.check(new OutOfMemoryError("Java heap space"));

        assertThat(ends).isEmpty();
        assertThat(err.size()).isZero();
    }

    @Test
    void exitsThoughTheLineIsNotRead() throws InterruptedException {
        CountDownLatch never = new CountDownLatch(1);
        OutputStream full = new OutputStream() {
            @Override
            public void write(int value) {
                try {
                    never.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        };
        OutOfMemoryExit exit = new OutOfMemoryExit(full, ends::add);
        Thread blocked = Thread.ofPlatform().start(() -> exit.check(new OutOfMemoryError("Java heap space")));

        assertThat(ends.poll(30, TimeUnit.SECONDS)).isEqualTo(3);
        never.countDown();
        blocked.join();
    }
}
