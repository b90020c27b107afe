package dev.nereid.distribution.process;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import io.netty.util.concurrent.EventExecutor;
import io.vertx.core.internal.ContextInternal;
import io.vertx.core.internal.VertxInternal;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ends each permanent thread of the ports while the server runs. */
@Timeout(60)
final class EndedThreadsTest {
    private static final int LOOPS = 2;

    @TempDir
    private Path models;

    private final EventLoops loops = EventLoops.start(LOOPS);

    private List<EventExecutor> all() {
        VertxInternal vertx = (VertxInternal) loops.vertx();
        List<EventExecutor> all = new ArrayList<>();
        vertx.nettyEventLoopGroup().forEach(all::add);
        vertx.acceptorEventLoopGroup().forEach(all::add);
        all.add(((ContextInternal) loops.metrics()).nettyEventLoop());
        return all;
    }

    @AfterEach
    void close() throws InterruptedException {
        for (EventExecutor loop : all()) {
            loop.shutdownGracefully(0, 0, TimeUnit.SECONDS).await();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, LOOPS, LOOPS + 1}) // the last ones are the acceptor and the loop for metrics
    void theServerIsNotLiveOnceAnEventLoopOrTheAcceptorHasEnded(int index) throws Exception {
        assertThat(all()).hasSize(LOOPS + 2);
        try (NereidServer server = NereidServer.start(ServerOptions.of(models))) {
            loops.watch(server, true);
            assertThat(server.isLive()).isTrue();
            assertThat(server.isReady()).isTrue();

            all().get(index).shutdownGracefully(0, 0, TimeUnit.SECONDS).await();

            Eventually.holds("not live", 30, () -> !server.isLive());
            assertThat(server.isReady()).isFalse();
        }
    }

    @Test
    void theServerIsNotLiveIfAnEventLoopHasEndedBeforeItIsWatched() throws Exception {
        all().getFirst().shutdownGracefully(0, 0, TimeUnit.SECONDS).await();
        try (NereidServer server = NereidServer.start(ServerOptions.of(models))) {
            loops.watch(server, true);

            Eventually.holds("not live", 30, () -> !server.isLive());
        }
    }

    /** Threads of pools are not permanent: another one takes the place of one that ends. */
    @Test
    void workersOfGrpcAreReplaced() throws InterruptedException {
        Executor workers = loops.groups().longTasks();
        for (int i = 0; i < 3 * LOOPS; i++) {
            CountDownLatch ended = new CountDownLatch(1);
            workers.execute(() -> {
                Thread.currentThread().setUncaughtExceptionHandler((_, _) -> ended.countDown());
                throw new OutOfMemoryError("of a test");
            });
            ended.await();
        }
        CountDownLatch ran = new CountDownLatch(1);
        workers.execute(ran::countDown);
        ran.await();
        assertThat(ran.getCount()).isZero();
    }
}
