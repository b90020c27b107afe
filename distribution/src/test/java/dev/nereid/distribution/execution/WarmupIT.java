package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Warm-up, exchange of instances and host policies of ONNX Runtime models. */
final class WarmupIT {
    private static final Path SUM = TestPaths.checkout().resolve("examples/models/add_sub/1/model.onnx");

    @TempDir
    private Path directory;

    @Test
    void warmsAModelOfOnnxRuntimeUp() throws Exception {
        Repository models = new Repository(directory).onnx("sum", SUM, sum("""
                model_warmup [
                  { name: "zero" batch_size: 1 count: 2
                    inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: [ 4 ] zero_data: true } }
                    inputs { key: "INPUT1" value { data_type: TYPE_INT32 dims: [ 4 ] random_data: true } } },
                  { name: "file" batch_size: 8
                    inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: [ 4 ] input_data_file: "numbers" } }
                    inputs { key: "INPUT1" value { data_type: TYPE_INT32 dims: [ 4 ] zero_data: true } } }
                ]
                """));
        ByteBuffer numbers = ByteBuffer.allocate(20).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < 5; i++) {
            numbers.putInt(i);
        }
        Files.createDirectories(directory.resolve("sum/warmup"));
        Files.write(directory.resolve("sum/warmup/numbers"), numbers.array());

        try (NereidServer server = NereidServer.start(TestServer.of(models))) {
            assertThat(server.models().isReady(ModelRef.latest("sum"))).isTrue();
            assertThat(server.models().statistics().getFirst().executions().executionCount())
                    .isZero();
            assertThat(server.memory().bytesInUse()).isZero();
        }
    }

    @Test
    void failsTheLoadIfASampleLacksAnInput() {
        Repository models = new Repository(directory).onnx("sum", SUM, sum("""
                model_warmup { name: "half" batch_size: 1
                  inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: [ 4 ] zero_data: true } } }
                """));

        assertThatThrownBy(() -> NereidServer.start(TestServer.of(models)))
                .isInstanceOf(InferenceException.class)
                .hasMessageContaining("sum version 1: Invalid argument: failed to run warmup sample 'half': ")
                .hasMessageContaining("INPUT1");
    }

    @Test
    void exchangesInstancesOfOnnxRuntime() throws Exception {
        Repository models =
                new Repository(directory).onnx("sum", SUM, sum("instance_group { kind: KIND_CPU count: 1 }\n"));

        try (NereidServer server = NereidServer.start(TestServer.of(models))) {
            assertThat(sumOf(server, 20, 22)).isEqualTo(42);
            models.model("sum", sum("instance_group { kind: KIND_CPU count: 3 }\n"));
            server.updateInstances("sum");
            assertThat(sumOf(server, 1, 2)).isEqualTo(3);
            models.model("sum", sum("instance_group { kind: KIND_CPU count: 1 host_policy: \"other\" }\n"));
            server.updateInstances("sum");
            assertThat(sumOf(server, 3, 4)).isEqualTo(7);
            assertThat(server.models()
                            .config(ModelRef.latest("sum"))
                            .getInstanceGroup(0)
                            .getHostPolicy())
                    .isEqualTo("other");
            assertThat(server.models().statistics().getFirst().executions().executionCount())
                    .isEqualTo(3);
            Eventually.holds("no memory in use", 10, () -> server.memory().bytesInUse() == 0);
        }
    }

    private static int sumOf(NereidServer server, int first, int second) throws Exception {
        TensorBuffer memory = server.memory().allocate(32);
        for (int i = 0; i < 4; i++) {
            memory.segment().setAtIndex(ValueLayout.JAVA_INT, i, first);
            memory.segment().setAtIndex(ValueLayout.JAVA_INT, 4 + i, second);
        }
        Shape shape = Shape.of(1, 4);
        CompletableFuture<Integer> sum = new CompletableFuture<>();
        server.infer(
                InferRequest.of(
                        ModelRef.latest("sum"),
                        List.of(
                                InputTensor.of(
                                        "INPUT0",
                                        Tensor.of(
                                                DataType.INT32,
                                                shape,
                                                memory.segment().asSlice(0, 16))),
                                InputTensor.of(
                                        "INPUT1",
                                        Tensor.of(
                                                DataType.INT32,
                                                shape,
                                                memory.segment().asSlice(16, 16)))),
                        memory::close),
                new ResponseObserver() {
                    @Override
                    public void onResponse(InferResponse response) {
                        int found =
                                response.outputs().getFirst().tensor().data().get(ValueLayout.JAVA_INT_UNALIGNED, 0);
                        response.close();
                        sum.complete(found);
                    }

                    @Override
                    public void onCompleted() {
                        sum.completeExceptionally(new AssertionError("no response"));
                    }

                    @Override
                    public void onError(InferenceException error) {
                        sum.completeExceptionally(error);
                    }
                });
        return sum.get(60, TimeUnit.SECONDS);
    }

    @Test
    void servesAModelThatWasWarmedUpFromTheCommandLine() throws Exception {
        Repository models = new Repository(directory).onnx("sum", SUM, sum("""
                        instance_group { count: 1 kind: KIND_CPU host_policy: "one" }
                        model_warmup { name: "zero" batch_size: 4
                          inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: [ 4 ] zero_data: true } }
                          inputs { key: "INPUT1" value { data_type: TYPE_INT32 dims: [ 4 ] zero_data: true } } }
                        """));
        String processor = allowed("/proc/self/status").replaceFirst(".*[-,]", "");

        try (InstalledServer server =
                InstalledServer.serve(models.directory(), "--host-policy=one,cpu-cores=" + processor)) {
            assertThat(server.get("/v2/models/sum/stats").body())
                    .contains("\"inference_count\":0", "\"execution_count\":0", "\"batch_stats\":[]");
            assertThat(processorsOf(server.pid(), "instance/sum/1/")).isEqualTo(processor);
            assertThat(server.get("/v2/models/sum/ready").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void reportsInOneLineWhichProcessorsAreMissing() throws Exception {
        InstalledServer.Result result =
                InstalledServer.run("serve", "--model-repository=" + directory, "--host-policy=p,cpu-cores=9999");

        assertThat(result.status()).isNotZero();
        assertThat(result.err().strip())
                .matches("nereid serve: --host-policy: p,cpu-cores=9999 \\(expected: processors among [-,0-9]+\\)");
    }

    /** Reads the processors of a thread of another process; names of threads are cut to 15 letters there. */
    private static String processorsOf(long process, String thread) throws IOException {
        Path tasks = Path.of("/proc", String.valueOf(process), "task");
        try (var all = Files.list(tasks)) {
            for (Path task : all.toList()) {
                String name = Files.readString(task.resolve("comm")).strip();
                if (name.equals(thread.substring(0, Math.min(thread.length(), 15)))) {
                    return allowed(task.resolve("status").toString());
                }
            }
        }
        throw new AssertionError("no thread " + thread);
    }

    private static String allowed(String status) throws IOException {
        return Files.readAllLines(Path.of(status)).stream()
                .filter(line -> line.startsWith("Cpus_allowed_list:"))
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .findFirst()
                .orElseThrow();
    }

    private static String sum(String more) {
        String dims = "data_type: TYPE_INT32 dims: [ 4 ] }";
        return "backend: \"onnxruntime\"\nmax_batch_size: 8\n"
                + "input [ { name: \"INPUT0\" " + dims + ", { name: \"INPUT1\" " + dims + " ]\n"
                + "output [ { name: \"OUTPUT0\" " + dims + ", { name: \"OUTPUT1\" " + dims + " ]\n" + more;
    }
}
