package dev.nereid.api.tls;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class TlsReloaderTest {
    @TempDir
    private static Path made;

    private static TestKeys first;
    private static TestKeys second;

    @TempDir
    private Path directory;

    private final Deque<Runnable> tasks = new ArrayDeque<>();
    private final List<TlsCredentials> reloaded = new ArrayList<>();
    private CompletionStage<?> completion = CompletableFuture.completedFuture(null);
    private TlsReloader reloader;
    private @Nullable Error failure;

    @BeforeAll
    static void makeKeys() throws Exception {
        first = TestKeys.make(made, "first", "EC");
        second = TestKeys.make(made, "second", "EC");
    }

    @BeforeEach
    void start() throws Exception {
        write(first);
        TlsFiles files = TlsFiles.of(directory.resolve("crt"), directory.resolve("key"), Optional.empty());
        reloader = new TlsReloader("test", TlsCredentials.read(files), tasks::add, credentials -> {
            if (failure != null) {
                throw failure;
            }
            reloaded.add(credentials);
            return completion;
        });
    }

    private void write(TestKeys keys) throws Exception {
        Files.writeString(directory.resolve("crt"), keys.certificatePem());
        Files.writeString(directory.resolve("key"), keys.keyPem());
    }

    private void check() {
        reloader.check();
        tasks.remove().run();
    }

    @Test
    void passesChangedCredentialsOnce() throws Exception {
        check();
        assertThat(reloaded).isEmpty();

        write(second);
        check();
        check();
        assertThat(reloaded).hasSize(1);
        assertThat(reloaded.getFirst().chain()).containsExactly(second.certificate());

        write(first);
        check();
        assertThat(reloaded).hasSize(2);
    }

    @Test
    void ignoresFilesThatCannotBeUsed() throws Exception {
        Files.writeString(directory.resolve("key"), second.keyPem());
        check();
        Files.delete(directory.resolve("key"));
        check();
        assertThat(reloaded).isEmpty();

        write(second);
        check();
        assertThat(reloaded).hasSize(1);
    }

    @Test
    void triesAgainAfterAFailure() throws Exception {
        completion = CompletableFuture.failedFuture(new GeneralSecurityException("no"));
        write(second);
        check();
        completion = CompletableFuture.completedFuture(null);
        check();
        check();

        assertThat(reloaded).hasSize(2);
    }

    @Test
    void checksOnceAtATime() throws Exception {
        CompletableFuture<?> pending = new CompletableFuture<>();
        completion = pending;
        write(second);

        reloader.check();
        reloader.check();
        assertThat(tasks).hasSize(1);
        tasks.remove().run();
        reloader.check();
        assertThat(tasks).as("while the listener is busy").isEmpty();

        pending.complete(null);
        check();
        assertThat(reloaded).hasSize(1);
    }

    @Test
    void triesAgainAfterAnErrorOfTheJvm() throws Exception {
        write(second);
        failure = new OutOfMemoryError("Cannot reserve direct buffer memory");
        check();
        assertThat(reloaded).isEmpty();

        failure = null;
        check();
        assertThat(reloaded).hasSize(1);
    }

    @Test
    void survivesAnExecutorThatRefuses() throws Exception {
        List<Runnable> accepted = new ArrayList<>();
        TlsFiles files = TlsFiles.of(directory.resolve("crt"), directory.resolve("key"), Optional.empty());
        boolean[] refuses = {true};
        TlsReloader other = new TlsReloader(
                "test",
                TlsCredentials.read(files),
                task -> {
                    if (refuses[0]) {
                        throw new RejectedExecutionException();
                    }
                    accepted.add(task);
                },
                credentials -> completion);

        other.check();
        refuses[0] = false;
        other.check();

        assertThat(accepted).hasSize(1);
    }
}
