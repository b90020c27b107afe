package dev.nereid.distribution.execution;

import static dev.nereid.distribution.testing.HastyServer.assertDirect;
import static dev.nereid.distribution.testing.TensorBytes.floats;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.HastyServer;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests direct execution of a backend that declares its executions short. It is tested over each protocol and form of
 * request. Executions run on the event loop of the request, unless the work after the execution takes long. In that
 * case the instance's own thread executes, and direct execution resumes with the next request.
 */
@Timeout(120)
class DirectExecutionIT {
    private static final Path SEGMENTS = Path.of("/dev/shm");
    private static final String KEY = "nereid-direct-" + ProcessHandle.current().pid();
    private static final String MODEL = "hasty";
    private static final String THREE = "[0.25,3.0,1.5]";

    @TempDir
    private Path directory;

    private HastyServer server;

    @BeforeEach
    void start() throws IOException, InterruptedException {
        server = new HastyServer(directory, MODEL);
    }

    @AfterEach
    void stop() throws IOException, InterruptedException {
        server.close();
        Files.deleteIfExists(SEGMENTS.resolve(KEY));
    }

    @Test
    void executesDirectlyOverHttp() throws IOException {
        assertResponseOverHttp();
    }

    private void assertResponseOverHttp() throws IOException {
        HastyServer.awaitIdle(MODEL);
        RawHttpResponse response = server.http.exchange(HttpRequests.json(MODEL, "{" + input(THREE) + "}"));

        assertThat(response.text()).contains("\"data\":" + THREE);
        assertDirect(response.text());
    }

    @Test
    void executesDirectlyOverGrpc() {
        assertResponseOverGrpc();
    }

    private void assertResponseOverGrpc() {
        HastyServer.awaitIdle(MODEL);
        ModelInferResponse response =
                server.grpc().modelInfer(request(0.25f, 3, 1.5f).build());

        assertThat(response.getRawOutputContentsList())
                .anySatisfy(content -> assertThat(content.toByteArray()).isEqualTo(floats(0.25f, 3, 1.5f)));
        assertDirect(response.toString());
    }

    @Test
    void classifiesOverHttp() throws IOException {
        RawHttpResponse response = server.http.exchange(HttpRequests.json(
                MODEL,
                "{" + input(THREE) + ",\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{\"classification\":2}},"
                        + "{\"name\":\"THREAD\"}]}"));

        assertThat(response.text()).contains("[\"3.000000:1:bee\",\"1.500000:2:cat\"]");
        assertOwnThread(response.text());
        assertResponseOverHttp();
    }

    @Test
    void classifiesOverGrpc() {
        ModelInferRequest.Builder request = request(0.25f, 3, 1.5f);
        request.addOutputsBuilder()
                .setName("OUTPUT0")
                .putParameters(
                        "classification",
                        InferParameter.newBuilder().setInt64Param(1).build());
        request.addOutputsBuilder().setName("THREAD");

        ModelInferResponse response = server.grpc().modelInfer(request.build());

        assertThat(response.getRawOutputContentsList())
                .anySatisfy(content -> assertThat(content.toStringUtf8()).contains("3.000000:1:bee"));
        assertOwnThread(response.toString());
        assertResponseOverGrpc();
    }

    @Test
    void writesIntoMemoryOfTheClientOverHttp() throws Exception {
        register();

        RawHttpResponse response = server.http.exchange(HttpRequests.json(
                MODEL,
                "{" + input(THREE) + ",\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{"
                        + "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":12}},{\"name\":\"THREAD\"}]}"));

        assertThat(response.status()).as(response.text()).isEqualTo(200);
        assertOwnThread(response.text());
        assertThat(shared(12)).isEqualTo(floats(0.25f, 3, 1.5f));
        assertResponseOverHttp();
    }

    @Test
    void writesIntoMemoryOfTheClientOverGrpc() throws Exception {
        register();
        ModelInferRequest.Builder request = request(1, 2, 3);
        request.addOutputsBuilder()
                .setName("OUTPUT0")
                .putParameters(
                        "shared_memory_region",
                        InferParameter.newBuilder().setStringParam("r").build())
                .putParameters(
                        "shared_memory_byte_size",
                        InferParameter.newBuilder().setInt64Param(12).build());
        request.addOutputsBuilder().setName("THREAD");

        assertOwnThread(server.grpc().modelInfer(request.build()).toString());
        assertThat(shared(12)).isEqualTo(floats(1, 2, 3));
        assertResponseOverGrpc();
    }

    @Test
    void generates() throws IOException {
        RawHttpResponse response = server.http.exchange(generate("generate", THREE));

        assertThat(response.text()).contains("\"OUTPUT0\":" + THREE);
        assertDirect(response.text());
    }

    @Test
    void generatesAStream() throws IOException {
        RawHttpResponse response = server.http.exchange(generate("generate_stream", THREE));

        assertThat(response.text())
                .startsWith("data: {")
                .contains("\"OUTPUT0\":" + THREE)
                .endsWith("}\n\n");
        assertDirect(response.text());
    }

    @Test
    void reportsTheErrorOfTheBackendOverHttp() throws IOException {
        RawHttpResponse failed = server.http.exchange(HttpRequests.json(MODEL, "{" + input("[-1]") + "}"));
        RawHttpResponse generated = server.http.exchange(generate("generate", "[-1]"));
        RawHttpResponse streamed = server.http.exchange(generate("generate_stream", "[-1]"));

        assertThat(failed.status()).isEqualTo(500);
        assertDirect(failed.error());
        assertThat(generated.status()).isEqualTo(500);
        assertDirect(generated.error());
        assertThat(streamed.status()).isEqualTo(500);
        assertDirect(streamed.text());
        assertThat(server.http.exchange(generate("generate", THREE)).status()).isEqualTo(200);
    }

    @Test
    void survivesAnExceptionOfTheBackendOverHttp() throws IOException {
        RawHttpResponse broken = server.http.exchange(HttpRequests.json(MODEL, "{" + input("[-2]") + "}"));
        RawHttpResponse generated = server.http.exchange(generate("generate", "[-2]"));
        RawHttpResponse streamed = server.http.exchange(generate("generate_stream", "[-2]"));

        assertThat(broken.status()).isEqualTo(500);
        assertThat(generated.status()).isEqualTo(500);
        assertThat(streamed.status()).isEqualTo(500);
        assertThat(server.http.exchange(generate("generate", THREE)).status()).isEqualTo(200);
    }

    @Test
    void reportsTheErrorOfTheBackendOverGrpc() {
        StatusRuntimeException failed = catchThrowableOfType(
                StatusRuntimeException.class,
                () -> server.grpc().modelInfer(request(-1).build()));

        assertThat(failed.getStatus().getCode()).isEqualTo(Status.Code.INTERNAL);
        assertDirect(failed.getStatus().getDescription());
        assertThat(server.grpc().modelInfer(request(1).build()).getOutputsCount())
                .isEqualTo(2);
    }

    @Test
    void survivesAnExceptionOfTheBackendOverGrpc() {
        StatusRuntimeException broken = catchThrowableOfType(
                StatusRuntimeException.class,
                () -> server.grpc().modelInfer(request(-2).build()));

        assertThat(broken.getStatus().getCode()).isEqualTo(Status.Code.INTERNAL);
        assertThat(server.grpc().modelInfer(request(1).build()).getOutputsCount())
                .isEqualTo(2);
    }

    @Test
    void goesOnWithAStreamAfterAnErrorAndAnException() throws InterruptedException {
        BlockingQueue<ModelStreamInferResponse> responses = new LinkedBlockingQueue<>();
        StreamObserver<ModelInferRequest> requests = GRPCInferenceServiceGrpc.newStub(server.channel)
                .modelStreamInfer(new StreamObserver<>() {
                    @Override
                    public void onNext(ModelStreamInferResponse response) {
                        responses.add(response);
                    }

                    @Override
                    public void onError(Throwable error) {
                        // the test waits in vain
                    }

                    @Override
                    public void onCompleted() {
                        // not awaited
                    }
                });
        for (float first : new float[] {1, -1, -2, 2}) {
            requests.onNext(request(first).build());
        }

        assertDirect(take(responses).getInferResponse().toString());
        assertDirect(take(responses).getErrorMessage());
        assertThat(take(responses).getErrorMessage()).isNotEmpty();
        assertDirect(take(responses).getInferResponse().toString());
        requests.onCompleted();
    }

    private static void assertOwnThread(String text) {
        assertThat(text).contains("instance/hasty/1/");
    }

    private static ModelStreamInferResponse take(BlockingQueue<ModelStreamInferResponse> responses)
            throws InterruptedException {
        ModelStreamInferResponse response = responses.poll(60, TimeUnit.SECONDS);
        assertThat(response).isNotNull();
        return response;
    }

    private void register() throws IOException {
        assumeTrue(Files.isWritable(SEGMENTS), SEGMENTS + " is not there");
        Files.write(SEGMENTS.resolve(KEY), new byte[4096]);
        server.server.server().sharedMemory().register("r", KEY, 0, 4096);
    }

    private static byte[] shared(int size) throws IOException {
        return Arrays.copyOf(Files.readAllBytes(SEGMENTS.resolve(KEY)), size);
    }

    private static String input(String numbers) {
        int count = numbers.split(",", -1).length;
        return "\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[" + count + "],\"data\":" + numbers
                + "}]";
    }

    private static byte[] generate(String verb, String numbers) {
        return HttpRequests.post("/v2/models/" + MODEL + "/" + verb, ("{\"INPUT0\":" + numbers + "}").getBytes(UTF_8));
    }

    private static ModelInferRequest.Builder request(float... values) {
        return ClientRequest.of(MODEL).input("INPUT0", "FP32", floats(values), values.length).overGrpc().toBuilder();
    }
}
