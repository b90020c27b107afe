package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * The server under attack by the tests of a class. A server that failed under an attack is replaced before the next
 * one. Confined to the test's thread.
 */
final class Victim implements BeforeEachCallback, AfterAllCallback {
    private static final Duration MAX_ATTACK = Duration.ofSeconds(60);
    private static final Duration AFTERWARDS = Duration.ofSeconds(1);
    private static final long MAX_LOG = 1 << 20;
    private static final int WARM_UP_CONNECTIONS = 20;
    private static final int WARM_UP_REQUESTS = 20;

    private final int descriptors;
    private final Supplier<String[]> flags;
    private Probe.Connector connector = RawHttp::socket;
    private Path directory;
    private VictimServer server;
    private boolean isSpoiled;

    private Victim(int descriptors, Supplier<String[]> flags) {
        this.descriptors = descriptors;
        this.flags = flags;
    }

    /** Starts a server with these flags in addition to the common ones. */
    static Victim with(String... flags) {
        return new Victim(VictimServer.DESCRIPTORS, () -> flags);
    }

    /** As {@link #with(String...)}, for flags that depend on the start of the tests. */
    static Victim with(Supplier<String[]> flags) {
        return new Victim(VictimServer.DESCRIPTORS, flags);
    }

    /** Starts a server with a limit of file descriptors. */
    static Victim withDescriptors(int descriptors, String... flags) {
        return new Victim(descriptors, () -> flags);
    }

    /** Makes the probe connect over another transport, for instance with TLS. */
    Victim connecting(Probe.Connector how) {
        connector = how;
        return this;
    }

    VictimServer server() {
        return server;
    }

    /** Attacks, and fails unless other clients are served during and after the attack. */
    void attack(Attack attack) throws Exception {
        attack(EnumSet.allOf(Probe.Transport.class), false, attack);
    }

    /** As {@link #attack}, but others may be refused while the memory for tensors is full. */
    void fill(Attack attack) throws Exception {
        attack(EnumSet.allOf(Probe.Transport.class), true, attack);
    }

    /** As {@link #attack}, but other clients may wait for up to some seconds. */
    void attackDelaying(double maxSeconds, Attack attack) throws Exception {
        attack(EnumSet.allOf(Probe.Transport.class), false, maxSeconds, attack);
    }

    /** As {@link #attack}, for other clients on existing connections. */
    void attackOthersThan(Set<Probe.Transport> ways, Attack attack) throws Exception {
        attack(EnumSet.complementOf(EnumSet.copyOf(ways)), false, attack);
    }

    private void attack(Set<Probe.Transport> ways, boolean mayBeFull, Attack attack) throws Exception {
        attack(ways, mayBeFull, 1, attack);
    }

    private void attack(Set<Probe.Transport> ways, boolean mayBeFull, double maxSeconds, Attack attack)
            throws Exception {
        isSpoiled = true; // unless the attack passes
        server.forgetPeak();
        long logBefore = server.logBytes();
        long before = System.nanoTime();
        Processors processors = Processors.now(server.pid());
        List<String> wrong = new ArrayList<>();
        Probe probe = Probe.start(server, ways, connector, mayBeFull);
        try (probe) {
            Await.until(
                    "two valid requests of each kind succeeded",
                    Duration.ofSeconds(5),
                    () -> probe.responses() >= 2 * ways.size());
            run(attack, wrong);
            Await.pause(AFTERWARDS);
        }
        double others = Processors.now(server.pid()).othersSince(processors);
        wrong.addAll(probe.failures(maxSeconds * Processors.factor(others)));
        if (!server.isAlive()) {
            wrong.add("the server has ended");
        }
        if (server.peakResidentBytes() > VictimServer.MAX_RESIDENT) {
            wrong.add("resident memory: " + (server.peakResidentBytes() >> 20) + " MB (expected: at most "
                    + (VictimServer.MAX_RESIDENT >> 20) + ")");
        }
        long logged = server.logBytes() - logBefore;
        if (logged > MAX_LOG) {
            wrong.add("log: " + logged + " bytes (expected: at most " + MAX_LOG + ")");
        }
        String figures = String.format(
                "%.1f s, %s; resident at most %d MB, log %d KB, %s; others had %.0f %% of the processors",
                (System.nanoTime() - before) / 1e9,
                probe,
                server.peakResidentBytes() >> 20,
                logged >> 10,
                server.isInControlGroup() ? "in a control group" : "no control group",
                100 * others);
        System.out.println("    " + figures);
        assertThat(wrong).as(figures + "\n" + server.logEnd(1_500)).isEmpty();
        isSpoiled = false;
    }

    private static void run(Attack attack, List<String> wrong) throws InterruptedException {
        FutureTask<Void> task = new FutureTask<>((Callable<Void>) () -> {
            attack.run();
            return null;
        });
        Thread thread = Thread.ofPlatform().name("attack").daemon().start(task);
        try {
            task.get(MAX_ATTACK.toSeconds(), TimeUnit.SECONDS);
        } catch (java.util.concurrent.ExecutionException e) {
            java.io.StringWriter trace = new java.io.StringWriter();
            e.getCause().printStackTrace(new java.io.PrintWriter(trace));
            wrong.add("the attack: " + trace);
        } catch (TimeoutException e) {
            thread.interrupt();
            wrong.add("the attack is not over after " + MAX_ATTACK.toSeconds() + " s");
        }
    }

    /** The first requests of a server are slower, and not the subject of these tests. */
    private void warmUp() throws IOException {
        Tensor input = Tensor.floats("warm", 1, 2, 3);
        for (int i = 0; i < WARM_UP_CONNECTIONS; i++) {
            try (RawHttp http = new RawHttp(connector.connect(server.http()));
                    RawHttp2 grpc = RawHttp2.over(connector.connect(server.grpc()))) {
                for (int j = 0; j < WARM_UP_REQUESTS; j++) {
                    http.exchange(RawHttp.infer(Models.ECHO, input));
                    grpc.call(Frames.INFER, InferMessage.request(Models.ECHO, input));
                }
            }
        }
    }

    @Override
    public void beforeEach(ExtensionContext context) throws IOException {
        System.out.println(context.getRequiredTestClass().getSimpleName() + ": " + context.getDisplayName());
        if (server != null && (isSpoiled || !server.isAlive())) {
            server.close();
            server = null;
        }
        if (server == null) {
            if (directory == null) {
                directory = Files.createTempDirectory("nereid-attacks-");
            }
            server = VictimServer.start(directory, descriptors, flags.get());
            warmUp();
            isSpoiled = false;
        }
    }

    @Override
    public void afterAll(ExtensionContext context) throws IOException {
        if (server != null) {
            server.close();
        }
        if (directory != null) {
            try (Stream<Path> files = Files.walk(directory)) {
                files.sorted(java.util.Comparator.reverseOrder())
                        .forEach(file -> file.toFile().delete());
            }
        }
    }

    /** The actions of hostile clients, which have disconnected when it returns. */
    @FunctionalInterface
    interface Attack {
        void run() throws Exception;
    }
}
