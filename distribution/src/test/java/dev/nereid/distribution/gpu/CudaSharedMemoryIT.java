package dev.nereid.distribution.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.InstalledServer;
import inference.CudaSharedMemoryRegisterRequest;
import inference.CudaSharedMemoryStatusRequest;
import inference.CudaSharedMemoryUnregisterRequest;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import inference.InferParameter;
import inference.ModelInferRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Inputs and outputs in device memory of another process, over both protocols, on a stand-in of the driver. */
@Timeout(120)
final class CudaSharedMemoryIT {
    private static final Path MODELS = InstalledServer.CHECKOUT.resolve("examples/ptx-models");
    private static final int COUNT = 1024;
    private static final long BYTES = 4L * COUNT;
    private static final long MEMORY = 4 * BYTES;

    @TempDir
    private static Path library;

    private static Path driver;
    private static InstalledServer server;
    private static ManagedChannel channel;
    private static GRPCInferenceServiceBlockingStub grpc;

    private GpuClient client;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        driver = StandInDriver.compile(library);
        server = StandInDriver.serve(driver, MODELS, "--allow-client-shm=true");
        channel = Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                .build();
        grpc = GRPCInferenceServiceGrpc.newBlockingStub(channel);
    }

    @AfterAll
    static void stop() throws InterruptedException {
        if (channel != null) {
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
        if (server != null) {
            server.close();
        }
    }

    @BeforeEach
    void startClient() throws IOException {
        client = new GpuClient(driver, MEMORY);
    }

    @AfterEach
    void stopClient() throws IOException, InterruptedException {
        client.close();
        server.post("/v2/cudasharedmemory/unregister", "");
    }

    private HttpResponse<String> register(String region, String handle, long byteSize)
            throws IOException, InterruptedException {
        return server.post(
                "/v2/cudasharedmemory/region/" + region + "/register",
                "{\"raw_handle\":{\"b64\":\"" + handle + "\"},\"device_id\":0,\"byte_size\":" + byteSize + "}");
    }

    private static String parameters(long offset, long byteSize) {
        return "\"parameters\":{\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":" + byteSize
                + ",\"shared_memory_offset\":" + offset + "}";
    }

    private static HttpResponse<String> infer(long in, long out, long outSize)
            throws IOException, InterruptedException {
        return server.post(
                "/v2/models/increment/infer",
                "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[1," + COUNT + "],"
                        + parameters(in, BYTES) + "}],\"outputs\":[{\"name\":\"OUT\"," + parameters(out, outSize)
                        + "}]}");
    }

    @Test
    void servesInputsAndOutputsOverHttp() throws IOException, InterruptedException {
        assertThat(register("r", client.handle(), MEMORY).statusCode()).isEqualTo(200);
        assertThat(server.get("/v2/cudasharedmemory/region/r/status").body())
                .isEqualTo("[{\"name\":\"r\",\"device_id\":0,\"byte_size\":" + MEMORY + "}]");
        // In place; then where kernels may read no numbers, or not begin.
        for (long offset : new long[] {0, 256, 64, 4, 1}) {
            client.fill(offset, COUNT, 7);

            HttpResponse<String> response = infer(offset, 2 * BYTES + offset, BYTES);

            assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
            assertThat(response.body()).contains("\"OUT\"").doesNotContain("\"data\"");
            assertThat(client.compare(2 * BYTES + offset, COUNT, 8))
                    .as("offset %d", offset)
                    .isEqualTo("equal");
            assertThat(client.compare(offset, COUNT, 7)).as("the input").isEqualTo("equal");
        }
    }

    private static ModelInferRequest request(long in, long out) {
        return ModelInferRequest.newBuilder()
                .setModelName("increment")
                .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                        .setName("IN")
                        .setDatatype("FP32")
                        .addShape(1)
                        .addShape(COUNT)
                        .putParameters("shared_memory_region", text("r"))
                        .putParameters("shared_memory_offset", number(in))
                        .putParameters("shared_memory_byte_size", number(BYTES)))
                .addOutputs(ModelInferRequest.InferRequestedOutputTensor.newBuilder()
                        .setName("OUT")
                        .putParameters("shared_memory_region", text("r"))
                        .putParameters("shared_memory_offset", number(out))
                        .putParameters("shared_memory_byte_size", number(BYTES)))
                .build();
    }

    private static InferParameter text(String value) {
        return InferParameter.newBuilder().setStringParam(value).build();
    }

    private static InferParameter number(long value) {
        return InferParameter.newBuilder().setInt64Param(value).build();
    }

    private void registerOverGrpc() {
        grpc.cudaSharedMemoryRegister(CudaSharedMemoryRegisterRequest.newBuilder()
                .setName("r")
                .setRawHandle(client.handleBytes())
                .setByteSize(MEMORY)
                .build());
    }

    @Test
    void servesInputsAndOutputsOverGrpc() throws IOException {
        registerOverGrpc();
        client.fill(0, COUNT, 1);

        assertThat(grpc.modelInfer(request(0, BYTES)).getRawOutputContentsList())
                .as("the content is in the region")
                .allMatch(ByteString::isEmpty);

        assertThat(client.compare(BYTES, COUNT, 2)).isEqualTo("equal");
        assertThat(grpc.cudaSharedMemoryStatus(CudaSharedMemoryStatusRequest.getDefaultInstance())
                        .getRegionsMap())
                .containsOnlyKeys("r");
        grpc.cudaSharedMemoryUnregister(
                CudaSharedMemoryUnregisterRequest.newBuilder().setName("r").build());
        assertThatExceptionOfType(StatusRuntimeException.class)
                .isThrownBy(() -> grpc.modelInfer(request(0, BYTES)))
                .withMessageContaining("Unable to find shared memory region: 'r'")
                .matches(e -> e.getStatus().getCode() != Status.Code.OK);
    }

    @Test
    void readsAndWritesAtAnyOffsetOverGrpc() throws IOException {
        registerOverGrpc();
        for (long offset : new long[] {256, 64, 4, 1}) {
            client.fill(offset, COUNT, 7);

            assertThat(grpc.modelInfer(request(offset, 2 * BYTES + offset)).getOutputsCount())
                    .isEqualTo(1);

            assertThat(client.compare(2 * BYTES + offset, COUNT, 8))
                    .as("offset %d", offset)
                    .isEqualTo("equal");
        }
    }

    @Test
    void refusesHandlesThatOpenNoMemory() throws IOException, InterruptedException {
        assertThat(register("r", "AAAA", MEMORY).body())
                .contains("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
        assertThat(register("r", "?", MEMORY).statusCode()).isEqualTo(400);
        for (int size : new int[] {0, 3, 64, 65}) {
            assertThatExceptionOfType(StatusRuntimeException.class)
                    .as("%d bytes", size)
                    .isThrownBy(() -> grpc.cudaSharedMemoryRegister(CudaSharedMemoryRegisterRequest.newBuilder()
                            .setName("r")
                            .setRawHandle(ByteString.copyFrom(new byte[size]))
                            .setByteSize(MEMORY)
                            .build()))
                    .matches(e -> e.getStatus().getCode() == Status.Code.INVALID_ARGUMENT
                            || e.getStatus().getCode() == Status.Code.INTERNAL);
        }
        assertThat(server.get("/v2/cudasharedmemory/status").body()).isEqualTo("[]");
    }

    /** The region ends with the requests that began before; one that begins later has none. */
    @Test
    void unregistersWhileRequestsRun() throws Exception {
        client.fill(0, COUNT, 1);
        List<Future<Integer>> clients = new ArrayList<>();
        AtomicBoolean ends = new AtomicBoolean();
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            for (int i = 0; i < 4; i++) {
                clients.add(threads.submit(() -> served(ends)));
            }
            try {
                for (int i = 0; i < 50; i++) {
                    registerOverGrpc();
                    grpc.modelInfer(request(0, BYTES));
                    assertThat(server.post("/v2/cudasharedmemory/region/r/unregister", "")
                                    .statusCode())
                            .isEqualTo(200);
                    awaitNoRegion();
                }
            } finally {
                ends.set(true);
            }
            int served = 0;
            for (Future<Integer> one : clients) {
                served += one.get(60, TimeUnit.SECONDS);
            }
            assertThat(served).as("requests with a region").isPositive();
        }
        assertThat(client.compare(BYTES, COUNT, 2)).isEqualTo("equal");
        assertThat(server.get("/v2/health/live").statusCode()).isEqualTo(200);
    }

    /** Waits until no region is registered; the limit of the test limits it too. */
    private static void awaitNoRegion() throws IOException, InterruptedException {
        while (!server.get("/v2/cudasharedmemory/status").body().equals("[]")) {
            Thread.onSpinWait();
        }
    }

    /** Sends requests until the end; returns how many found the region. */
    private static int served(AtomicBoolean ends) {
        int served = 0;
        while (!ends.get()) {
            try {
                grpc.modelInfer(request(0, BYTES));
                served++;
            } catch (StatusRuntimeException e) {
                assertThat(e).hasMessageContaining("Unable to find shared memory region: 'r'");
            }
        }
        return served;
    }

    @Test
    void joinsRequestsInABatch() throws Exception {
        registerOverGrpc();
        client.fill(0, COUNT, 1);
        client.fill(BYTES, COUNT, 5000);
        List<Future<?>> responses = new ArrayList<>();
        try (ExecutorService clients = Executors.newFixedThreadPool(8)) {
            for (int i = 0; i < 64; i++) {
                ModelInferRequest request = request(i % 2 * BYTES, (2 + i % 2) * BYTES);
                responses.add(clients.submit(() -> grpc.modelInfer(request)));
            }
            for (Future<?> response : responses) {
                response.get(60, TimeUnit.SECONDS);
            }
        }
        assertThat(client.compare(2 * BYTES, COUNT, 2)).isEqualTo("equal");
        assertThat(client.compare(3 * BYTES, COUNT, 5001)).isEqualTo("equal");
    }

    @Test
    void namesWhatDoesNotFit() throws IOException, InterruptedException {
        assertThat(register("large", client.handle(), MEMORY + 1).body())
                .contains("byte_size " + (MEMORY + 1) + " (expected: at most " + MEMORY + ", the size of the memory)");
        assertThat(register("r", client.handle(), MEMORY).statusCode()).isEqualTo(200);
        assertThat(register("r", client.handle(), MEMORY).body()).contains("already in manager");
        assertThat(infer(4 * BYTES, 0, BYTES).body()).contains("Invalid offset");
        assertThat(infer(4 * BYTES - 4, 0, BYTES).body()).contains("Invalid offset + byte size");
        assertThat(infer(-1, 0, BYTES).statusCode()).isNotEqualTo(200);
        assertThat(infer(0, BYTES, BYTES - 4).body())
                .contains("shared memory size specified with the request for output 'OUT'");
        assertThat(infer(0, 2 * BYTES, BYTES).statusCode()).as("afterwards").isEqualTo(200);
    }

    @Test
    void usesTheMemoryOfAClientThatEnded() throws IOException, InterruptedException {
        String handle = client.handle();
        assertThat(register("r", handle, MEMORY).statusCode()).isEqualTo(200);
        client.fill(0, COUNT, 3);
        client.close();

        assertThat(infer(0, BYTES, BYTES).statusCode()).as("the mapping stays").isEqualTo(200);
        assertThat(server.post("/v2/cudasharedmemory/region/r/unregister", "").statusCode())
                .isEqualTo(200);
        assertThat(register("r", handle, MEMORY).body()).contains("the handle opens no memory");
        assertThat(infer(0, BYTES, BYTES).body()).contains("Unable to find shared memory region: 'r'");
    }
}
