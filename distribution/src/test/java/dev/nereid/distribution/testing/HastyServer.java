package dev.nereid.distribution.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.hasty.HastyBackendProvider;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A server on one event loop, and a client of each protocol. Its models are those of the backend {@code hasty}, which
 * may run on the event loop. Confined to the test's thread.
 */
public final class HastyServer implements AutoCloseable {
    private static final String EVENT_LOOP = "vert.x-eventloop-thread-";
    private static final long TIMEOUT_SECONDS = 60;

    /** More than the trial; long executions of a busy machine prolong it. */
    private static final int MAX_TRIAL = 50_000;

    public final TestServer server;
    public final HttpConnection http;
    public final ManagedChannel channel;
    final GRPCInferenceServiceBlockingStub grpc;

    public HastyServer(Path directory, String... names) throws IOException, InterruptedException {
        Repository models = new Repository(directory.resolve("models"));
        for (String name : names) {
            models.model(
                    name,
                    Repository.identity(0, "FP32", "[ -1 ]", "")
                            .replace("\"identity\"", "\"hasty\"")
                            .replace(
                                    "output [ { ",
                                    "output [ { name: \"THREAD\" data_type: TYPE_STRING dims: [ 1 ] },"
                                            + " { label_filename: \"labels.txt\" "));
            Files.writeString(models.directory().resolve(name).resolve("labels.txt"), "ant\nbee\ncat\n");
        }
        Path plugins = GatedPlugin.pack(directory.resolve("plugins"), HastyBackendProvider.class);
        Path[] built = TestPaths.plugins();
        server = TestServer.open(NereidServer.start(
                TestServer.of(models).withPlugins(built[0], built[1], plugins).with(o -> o.clientSharedMemory = true)));
        http = server.http();
        channel = server.grpc();
        grpc = GRPCInferenceServiceGrpc.newBlockingStub(channel);
        for (String name : names) {
            endTrial(name);
            awaitIdle(name);
        }
    }

    /** Sends requests until one is executed directly, which its first short executions are not. */
    private void endTrial(String model) throws IOException {
        byte[] request = HttpRequests.json(
                model, "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[0]}]}");
        for (int i = 0; i < MAX_TRIAL; i++) {
            if (http.exchange(request).text().contains(EVENT_LOOP)) {
                return;
            }
        }
        throw new AssertionError(model + ": not executed directly after " + MAX_TRIAL + " requests");
    }

    /**
     * Waits until the instance of a model is idle: its own thread, if it has one, may not be there yet when the response
     * has arrived.
     */
    public static void awaitIdle(String model) {
        String name = "instance/" + model + "/1/" + model + "_0";
        Eventually.holds(
                "idle instance",
                10,
                () -> Thread.getAllStackTraces().keySet().stream()
                        .filter(thread -> thread.getName().equals(name))
                        .map(LockSupport::getBlocker)
                        .allMatch(blocker -> blocker != null
                                && blocker.getClass().getSimpleName().equals("InstanceHandle")));
    }

    /** Returns a client with a deadline. */
    public GRPCInferenceServiceBlockingStub grpc() {
        return grpc.withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    /** Fails unless a text names an event loop as the thread. */
    public static void assertDirect(String text) {
        assertThat(text).contains(EVENT_LOOP);
    }

    @Override
    public void close() throws IOException {
        http.close();
        channel.shutdownNow();
        Eventually.holds("no connection", 10, channel::isTerminated);
        Eventually.holds("no memory in use", 10, () -> server.server().memory().bytesInUse() == 0);
        server.close();
    }
}
