package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A server of which a permanent thread has ended. */
final class EndedThreadTest {
    @TempDir
    private Path models;

    private final List<String> reported = new CopyOnWriteArrayList<>();

    private NereidServer start() throws InterruptedException {
        FatalErrorHandler handler = new FatalErrorHandler() {
            @Override
            public void onFatalError(OutOfMemoryError error) {}

            @Override
            public void onThreadEnded(String thread) {
                reported.add(thread);
                throw new IllegalStateException("of a test");
            }
        };
        return NereidServer.start(ServerOptions.of(models).with(o -> {
            o.executionLimit = Duration.ZERO;
            o.loadLimit = Duration.ZERO;
            o.fatalErrors = handler;
        }));
    }

    @Test
    void isNeitherLiveNorReady() throws InterruptedException {
        try (NereidServer server = start()) {
            assertThat(server.isLive()).isTrue();

            server.fatalErrors().onThreadEnded("timer");

            assertThat(server.isLive()).isFalse();
            assertThat(server.isReady()).isFalse();
            assertThat(reported).containsExactly("timer");
        }
    }

    @Test
    void reportsNoThreadThatEndsWithTheServer() throws InterruptedException {
        start().close();

        assertThat(reported).isEmpty();
    }
}
