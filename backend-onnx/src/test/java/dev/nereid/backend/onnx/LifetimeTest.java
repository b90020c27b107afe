package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class LifetimeTest {
    private final AtomicInteger releases = new AtomicInteger();
    private final Lifetime lifetime = new Lifetime("thing", releases::incrementAndGet);

    @Test
    void releasesAtOnceWhenNobodyUsesIt() {
        lifetime.close();

        assertThat(releases).hasValue(1);
    }

    @Test
    void waitsForTheLastUser() {
        lifetime.acquire();
        lifetime.acquire();
        lifetime.close();
        lifetime.release();
        assertThat(releases).hasValue(0);

        lifetime.release();

        assertThat(releases).hasValue(1);
    }

    @Test
    void admitsNobodyOnceClosed() {
        lifetime.acquire();
        lifetime.close();

        assertThatThrownBy(lifetime::acquire)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("thing: closed (expected: open)");
    }

    @Test
    void letsAUserShareAfterClosing() {
        lifetime.acquire();
        lifetime.close();
        lifetime.share();
        lifetime.release();
        assertThat(releases).hasValue(0);

        lifetime.release();

        assertThat(releases).hasValue(1);
    }

    @Test
    void refusesToShareOrReleaseWhatNobodyUses() {
        assertThatThrownBy(lifetime::share).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(lifetime::release).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void releasesOnceHoweverOftenItIsClosed() {
        lifetime.close();
        lifetime.close();

        assertThat(releases).hasValue(1);
    }

    @Test
    void releasesOnceAndNeverUnderAUserWhateverThreadsDo() throws InterruptedException, ExecutionException {
        for (int round = 0; round < 500; round++) {
            AtomicInteger released = new AtomicInteger();
            Lifetime contended = new Lifetime("thing", released::incrementAndGet);
            try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
                List<Future<?>> users = new ArrayList<>();
                users.add(threads.submit(() -> useManyTimes(contended, released)));
                users.add(threads.submit(() -> useManyTimes(contended, released)));
                users.add(threads.submit(contended::close));
                for (Future<?> user : users) {
                    user.get();
                }
            }
            assertThat(released).hasValue(1);
        }
    }

    private static void useManyTimes(Lifetime lifetime, AtomicInteger released) {
        for (int i = 0; i < 100; i++) {
            try {
                lifetime.acquire();
            } catch (IllegalStateException e) {
                return; // closed meanwhile
            }
            assertThat(released).hasValue(0);
            lifetime.release();
        }
    }
}
