package dev.nereid.backend.natives;

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

class ReferenceCountTest {
    private final AtomicInteger releases = new AtomicInteger();
    private final ReferenceCount references = new ReferenceCount("thing", releases::incrementAndGet);

    @Test
    void releasesAtOnceWithoutReferences() {
        references.close();

        assertThat(releases).hasValue(1);
    }

    @Test
    void waitsForTheLastReference() {
        references.retain();
        references.retain();
        references.close();
        references.release();
        assertThat(releases).hasValue(0);

        references.release();

        assertThat(releases).hasValue(1);
    }

    @Test
    void refusesReferencesOnceClosed() {
        references.retain();
        references.close();

        assertThatThrownBy(references::retain)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("thing: closed (expected: open)");
    }

    @Test
    void allowsRetainingAgainAfterClosing() {
        references.retain();
        references.close();
        references.retainAgain();
        references.release();
        assertThat(releases).hasValue(0);

        references.release();

        assertThat(releases).hasValue(1);
    }

    @Test
    void refusesToRetainAgainOrReleaseWithoutReferences() {
        assertThatThrownBy(references::retainAgain).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(references::release).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void releasesOnceHoweverOftenItIsClosed() {
        references.close();
        references.close();

        assertThat(releases).hasValue(1);
    }

    @Test
    void releasesOnceAndNeverWhileReferencedWhateverThreadsDo() throws InterruptedException, ExecutionException {
        for (int round = 0; round < 500; round++) {
            AtomicInteger released = new AtomicInteger();
            ReferenceCount contended = new ReferenceCount("thing", released::incrementAndGet);
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

    private static void useManyTimes(ReferenceCount lifetime, AtomicInteger released) {
        for (int i = 0; i < 100; i++) {
            try {
                lifetime.retain();
            } catch (IllegalStateException e) {
                return; // closed by another thread
            }
            assertThat(released).hasValue(0);
            lifetime.release();
        }
    }
}
