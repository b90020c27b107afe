package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.options.SupervisionOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A server of which a permanent thread has ended. */
final class EndedThreadTest {
    @TempDir
    private Path models;

    private final List<String> reported = new CopyOnWriteArrayList<>();

    private NereidServer start(boolean liveAfterFatalErrors) throws InterruptedException {
        FatalErrorHandler handler = new FatalErrorHandler() {
            @Override
            public void onFatalError(OutOfMemoryError error) {}

            @Override
            public void onThreadEnded(String thread) {
                reported.add(thread);
                throw new IllegalStateException("of a test");
            }
        };
        SupervisionOptions supervision =
                new SupervisionOptions(Duration.ZERO, Duration.ZERO, handler, liveAfterFatalErrors);
        return NereidServer.start(
                ServerOptions.of(models).withLifecycle(lifecycle -> lifecycle.withSupervision(supervision)));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void isNeitherLiveNorReady(boolean liveAfterFatalErrors) throws InterruptedException {
        try (NereidServer server = start(liveAfterFatalErrors)) {
            assertThat(server.isLive()).isTrue();

            server.fatalErrors().onThreadEnded("timer");

            assertThat(server.isLive()).isFalse();
            assertThat(server.isReady()).isFalse();
            assertThat(reported).containsExactly("timer");
        }
    }

    @Test
    void staysLiveAfterAFatalErrorIfThatIsWanted() throws InterruptedException {
        try (NereidServer server = start(true)) {
            server.fatalErrors().onFatalError(new OutOfMemoryError("Java heap space"));

            assertThat(server.isLive()).isTrue();
        }
        assertThat(reported).as("threads that end with the server").isEmpty();
    }
}
