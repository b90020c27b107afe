package dev.nereid.http;

import dev.nereid.api.TensorMemory;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import io.vertx.core.Vertx;
import java.io.IOException;
import java.time.Duration;

/** A front end before a fake server, whose closing checks that all memory was given back. */
final class RunningFrontend implements AutoCloseable {
    static final HttpOptions OPTIONS = HttpOptions.DEFAULT
            .listeningOn("127.0.0.1", 0)
            .limitedTo(1 << 20, 16 << 20)
            .connecting(HttpConnections.unlimited().withCloseTimeout(Duration.ofSeconds(10)));

    final LeakCheckingMemory memory;
    final FakeInferenceServer server;
    final HttpFrontend http;
    private final Vertx vertx = Vertx.vertx();

    RunningFrontend(HttpOptions options) throws IOException {
        this(options, new LeakCheckingMemory());
    }

    RunningFrontend(HttpOptions options, LeakCheckingMemory memory) throws IOException {
        this(options, memory, memory);
    }

    /** Starts a front end whose tensors lie in some memory that is taken from the one to be checked. */
    RunningFrontend(HttpOptions options, LeakCheckingMemory memory, TensorMemory used) throws IOException {
        this(options, memory, used, new TextMemory());
    }

    /** Starts a front end with a bound on long texts. */
    RunningFrontend(HttpOptions options, LeakCheckingMemory memory, TensorMemory used, TextMemory texts)
            throws IOException {
        this.memory = memory;
        server = new FakeInferenceServer(used)
                .add(FakeModel.identity("id", DataType.FP32, 8, -1))
                .add(FakeModel.identity("bytes", DataType.BYTES, 0, 1))
                .add(FakeModel.identity("plain", DataType.UINT8, 0, -1));
        http = HttpFrontend.start(vertx, server, options, texts);
    }

    HttpConnection connect() throws IOException {
        return new HttpConnection(http.port());
    }

    @Override
    public void close() {
        http.close();
        vertx.close().await();
        memory.close();
    }
}
