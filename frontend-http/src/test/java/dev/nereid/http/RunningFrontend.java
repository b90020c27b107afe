package dev.nereid.http;

import dev.nereid.api.memory.TensorMemory;
import dev.nereid.http.json.JsonMemoryLimiter;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import io.vertx.core.Vertx;
import java.io.IOException;
import java.time.Duration;
import java.util.function.Consumer;

/** A front end with a fake server. Closing it checks that all tensor memory was freed. */
public final class RunningFrontend implements AutoCloseable {
    public static final HttpOptions OPTIONS = options(_ -> {});

    public final LeakCheckingMemory memory;
    public final FakeInferenceServer server;
    public final HttpFrontend http;
    private final Vertx vertx = Vertx.vertx();

    /** Returns options of a small front end on a free port, with changes. */
    public static HttpOptions options(Consumer<HttpOptions.Builder> change) {
        return HttpOptions.of(http -> {
            http.port = 0;
            http.maxJsonBytes = 1 << 20;
            http.maxRequestBytes = 16 << 20;
            http.closeTimeout = Duration.ofSeconds(10);
            change.accept(http);
        });
    }

    public RunningFrontend(HttpOptions options) throws IOException {
        this(options, new LeakCheckingMemory());
    }

    public RunningFrontend(HttpOptions options, LeakCheckingMemory memory) throws IOException {
        this(options, memory, memory);
    }

    /** Starts a front end with tensor memory that allocates from the checked memory. */
    public RunningFrontend(HttpOptions options, LeakCheckingMemory memory, TensorMemory tensors) throws IOException {
        this(options, memory, tensors, new JsonMemoryLimiter());
    }

    /** Starts a front end with a limit on the memory of large JSON texts. */
    public RunningFrontend(
            HttpOptions options, LeakCheckingMemory memory, TensorMemory tensors, JsonMemoryLimiter jsonMemory)
            throws IOException {
        this.memory = memory;
        server = new FakeInferenceServer(tensors)
                .add(FakeModel.identity("id", DataType.FP32, 8, -1))
                .add(FakeModel.identity("bytes", DataType.BYTES, 0, 1))
                .add(FakeModel.identity("plain", DataType.UINT8, 0, -1));
        http = HttpFrontend.start(vertx, server, options, jsonMemory);
    }

    public RawHttpConnection connect() throws IOException {
        return new RawHttpConnection(http.port());
    }

    @Override
    public void close() {
        http.close();
        vertx.close().await();
        memory.close();
    }
}
