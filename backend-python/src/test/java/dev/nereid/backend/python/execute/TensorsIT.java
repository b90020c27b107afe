package dev.nereid.backend.python.execute;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.server.ReceivedResponses;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of tensors to and from a real Python. */
@Execution(ExecutionMode.SAME_THREAD)
final class TensorsIT {
    /** Answers the tensor itself, the array of it, a copy, or a copy by DLPack, by the first letter of the id. */
    private static final String IDENTITY = """
            import numpy as np
            import triton_python_backend_utils as pb


            class Holder:
                def __init__(self, tensor):
                    self.tensor = tensor

                def __dlpack__(self, stream=None):
                    return self.tensor.to_dlpack()

                def __dlpack_device__(self):
                    return self.tensor.__dlpack_device__()


            class TritonPythonModel:
                def execute(self, requests):
                    responses = []
                    for request in requests:
                        how, x = request.request_id(), request.inputs()[0]
                        if how == "same":
                            y = pb.Tensor("OUT", x.as_numpy())
                        elif how == "copy":
                            y = pb.Tensor("OUT", x.as_numpy().copy())
                        elif how == "dlpack":
                            y = pb.Tensor.from_dlpack("OUT", x.to_dlpack())
                        elif how == "holder":
                            y = pb.Tensor.from_dlpack("OUT", Holder(x))
                        elif how == "tensor":
                            y = x
                        responses.append(pb.InferenceResponse([y]))
                    return responses
            """;

    private static String config(DataType type, String name, String dims) {
        String tensor = "{ name: \"%s\" data_type: %s dims: [ %s ] }";
        String text = type == DataType.BYTES ? "TYPE_STRING" : "TYPE_" + type;
        return "input [ " + tensor.formatted(name, text, dims) + " ] output [ " + tensor.formatted("OUT", text, dims)
                + " ]";
    }

    private static Tensor random(DataType type, long... dims) {
        Random random = new Random(7);
        Shape shape = Shape.of(dims);
        if (type == DataType.BYTES) {
            List<byte[]> texts = random.ints(shape.elementCount(), 0, 20)
                    .mapToObj(length -> {
                        byte[] bytes = new byte[length];
                        random.nextBytes(bytes);
                        if (length > 0) {
                            bytes[length - 1] = 0;
                        }
                        return bytes;
                    })
                    .toList();
            return Tensor.ofByteStrings(shape, texts);
        }
        byte[] bytes = new byte[Math.toIntExact(shape.elementCount() * type.byteSize())];
        random.nextBytes(bytes);
        for (int i = 0; type == DataType.BOOL && i < bytes.length; i++) {
            bytes[i] &= 1;
        }
        MemorySegment data =
                Arena.ofAuto().allocate(Math.max(bytes.length, 1), 8).asSlice(0, bytes.length);
        MemorySegment.copy(bytes, 0, data, ValueLayout.JAVA_BYTE, 0, bytes.length);
        return Tensor.of(type, shape, data);
    }

    private static void assertIdentity(PythonServer server, String model, String input, Tensor tensor, String... hows) {
        for (String how : hows) {
            try (ModelResponse response = server.send(
                            server.request(model).id(how).input(input, tensor))
                    .one()) {
                Tensor out = response.requireOutput("OUT");
                assertThat(out.type()).as(how).isEqualTo(tensor.type());
                assertThat(out.shape()).as(how).isEqualTo(tensor.shape());
                assertThat(out.data().mismatch(tensor.data()))
                        .as(how + " " + tensor)
                        .isEqualTo(-1);
            }
        }
    }

    @Test
    void anInputWithoutMemoryFailsItsRequestAlone() {
        int large = 80 << 20;
        String config = "max_batch_size: 2 dynamic_batching { max_queue_delay_microseconds: 60000000 } "
                + config(DataType.UINT8, "IN", "-1").replaceFirst("dims", "allow_ragged_batch: true dims");
        try (PythonServer server = PythonServer.builder()
                .options(options -> options.backendSetting("python", "shm-limit-byte-size", "64M"))
                .model("batched", config, IDENTITY)
                .start()) {
            ReceivedResponses small =
                    server.send(server.request("batched").id("same").input("IN", random(DataType.UINT8, 1, 20)));
            ReceivedResponses refused =
                    server.send(server.request("batched").id("same").input("IN", zeros(1, large)));

            assertThat(refused.error())
                    .hasMessage("Failed to increase the shared memory pool size to " + large + " bytes.");
            assertThat(small.one().requireOutput("OUT").shape()).isEqualTo(Shape.of(1, 20));
            ReceivedResponses alone =
                    server.send(server.request("batched").id("same").input("IN", zeros(2, large / 2 + (16 << 20))));
            assertThat(alone.error()).hasMessageStartingWith("Failed to increase the shared memory pool size to ");
        }
    }

    private static Tensor zeros(long rows, long columns) {
        return Tensor.of(DataType.UINT8, Shape.of(rows, columns), Arena.ofAuto().allocate(rows * columns, 8));
    }

    @ParameterizedTest
    @EnumSource(DataType.class)
    void passesAllTypesAndShapes(DataType type) {
        String[] hows = type == DataType.BYTES
                ? new String[] {"same", "copy"}
                : type == DataType.BF16 ? new String[] {"dlpack", "holder"} : new String[] {"same", "copy", "dlpack"};
        try (PythonServer server = PythonServer.builder()
                .model("any", config(type, "IN", "-1, -1"), IDENTITY)
                .model("line", config(type, "IN", "-1"), IDENTITY)
                .model("named", config(type, "OUT", "-1"), IDENTITY)
                .model("batched", "max_batch_size: 8 " + config(type, "IN", "-1"), IDENTITY)
                .start()) {
            assertIdentity(server, "any", "IN", random(type, 3, 5), hows);
            assertIdentity(server, "any", "IN", random(type, 0, 5), hows);
            assertIdentity(server, "any", "IN", random(type, 5, 0), hows);
            assertIdentity(server, "batched", "IN", random(type, 8, 3), hows);
            assertIdentity(server, "batched", "IN", random(type, 1, 0), hows);
            for (long size : List.of(1L, 7L, 16383L, 16384L, 16385L, 200_000L)) {
                assertIdentity(server, "line", "IN", random(type, size), hows);
                assertIdentity(server, "named", "OUT", random(type, size), "tensor");
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4095, 4096, 4097, 16383, 16384, 16385, 65536, 1 << 20, (1 << 20) + 1, 10_000_000, 64 << 20})
    void passesAllSizes(int size) {
        try (PythonServer server = PythonServer.builder()
                .model("line", config(DataType.UINT8, "IN", "-1"), IDENTITY)
                .model("named", config(DataType.UINT8, "OUT", "-1"), IDENTITY)
                .model("texts", config(DataType.BYTES, "IN", "-1"), IDENTITY)
                .start()) {
            Tensor tensor = random(DataType.UINT8, size);
            for (int i = 0; i < 3; i++) {
                assertIdentity(server, "line", "IN", tensor, "same", "copy", "dlpack");
                assertIdentity(server, "named", "OUT", tensor, "tensor");
                byte[] text = tensor.data().toArray(ValueLayout.JAVA_BYTE);
                assertIdentity(server, "texts", "IN", Tensor.ofByteStrings(Shape.of(1), List.of(text)), "same");
            }
        }
    }

    @Test
    void passesScalars() {
        try (PythonServer server = PythonServer.scripted()) {
            ModelResponse response = server.run("return [out(np.float32(2.5).reshape(()))]");
            assertThat(response.requireOutput("OUT").shape().rank()).isZero();
            assertThat(response.requireOutput("OUT").floats()).containsExactly(2.5f);
            response = server.run("return [out(np.array(b'a\\0b', dtype=object))]");
            assertThat(response.requireOutput("OUT").shape().rank()).isZero();
            assertThat(response.requireOutput("OUT").byteStrings().getFirst()).containsExactly('a', 0, 'b');
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {10, 3000})
    void copiesArraysThatAreNotContiguous(int n) {
        try (PythonServer server = PythonServer.scripted()) {
            ModelResponse response = server.run("""
                    a = np.arange(%d * 2, dtype=np.float32).reshape(%d, 2)
                    return [pb.InferenceResponse([pb.Tensor("OUT", a.T), pb.Tensor("MORE", a[::-1, 1])])]
                    """.formatted(n, n));
            Tensor out = response.requireOutput("OUT");
            Tensor more = response.requireOutput("MORE");
            assertThat(out.shape()).isEqualTo(Shape.of(2, n));
            assertThat(more.shape()).isEqualTo(Shape.of(n));
            float[] values = out.floats();
            float[] back = more.floats();
            for (int i = 0; i < n; i++) {
                assertThat(values[i]).isEqualTo(2 * i);
                assertThat(values[n + i]).isEqualTo(2 * i + 1);
                assertThat(back[i]).isEqualTo(2 * (n - 1 - i) + 1);
            }
        }
    }

    @Test
    void refusesTypesThatTheProtocolLacks() {
        try (PythonServer server = PythonServer.scripted()) {
            for (String array : List.of(
                    "np.arange(3, dtype='>f4')",
                    "np.arange(3, dtype='>i8')",
                    "np.array(['a'])",
                    "np.zeros(2, dtype=np.complex64)",
                    "np.zeros(2, dtype='M8[s]')")) {
                assertThat(server.send(server.code("scripted", "return [out(" + array + ")]"))
                                .error())
                        .as(array)
                        .hasMessageStartingWith("Failed to process the request(s) for model 'scripted_0', message: "
                                + "TritonModelException: NumPy dtype is not supported.");
            }
            assertThat(server.send(server.code("scripted", "return [pb.InferenceResponse([pb.Tensor('OUT', [1])])]"))
                            .error())
                    .hasMessageContaining("message: TypeError: ");
            assertThat(server.runText("return [out('alive')]")).isEqualTo("alive");
        }
    }

    @Test
    void writesObjectsAsTheirTexts() {
        try (PythonServer server = PythonServer.scripted()) {
            ModelResponse response = server.run("""
                    values = [b"a\\0b\\xff", "ä", 1, None, 2.5, True, b"", ""]
                    return [pb.InferenceResponse([
                        pb.Tensor("OUT", np.array(values, dtype=object).reshape(2, 4)),
                        pb.Tensor("MORE", np.array([b"ab\\0", b"c"]))])]
                    """);
            Tensor out = response.requireOutput("OUT");
            assertThat(out.shape()).isEqualTo(Shape.of(2, 4));
            List<byte[]> texts = out.byteStrings();
            assertThat(texts.get(0)).containsExactly('a', 0, 'b', 0xff);
            assertThat(texts.subList(1, 8))
                    .extracting(text -> new String(text, UTF_8))
                    .containsExactly("ä", "1", "None", "2.5", "True", "", "");
            assertThat(response.requireOutput("MORE").strings()).containsExactly("ab", "c");
        }
    }

    @Test
    void readsArraysWhenTheResponseIsSent() {
        try (PythonServer server = PythonServer.scripted()) {
            ModelResponse response = server.run("""
                    a, b = np.zeros(3, dtype=np.float32), np.array([b"x"], dtype=object)
                    r = pb.InferenceResponse([pb.Tensor("OUT", a), pb.Tensor("MORE", b)])
                    a[1], b[0] = 7, b"y"
                    return [r]
                    """);
            assertThat(response.requireOutput("OUT").floats()).containsExactly(0, 7, 0);
            assertThat(response.requireOutput("MORE").strings()).containsExactly("x");
        }
    }

    /** Writes by a model to an array of an input do not change the tensor or a later request. */
    @ParameterizedTest
    @ValueSource(ints = {4, 100_000})
    void givesPrivateWritableArrays(int n) {
        try (PythonServer server = PythonServer.scripted()) {
            float[] ones = new float[n];
            java.util.Arrays.fill(ones, 1);
            Tensor x = Tensor.ofFloats(Shape.of(n), ones);
            for (int i = 0; i < 5; i++) {
                ModelResponse response =
                        server.send(server.code("scripted", """
                                x = tensor(requests[0])
                                a = x.as_numpy()
                                assert a is x.as_numpy() and a.flags.writeable and a.flags.c_contiguous
                                assert a.sum() == a.size, a
                                a[:] = 9
                                again = pb.Tensor.from_dlpack("OUT", x.to_dlpack())
                                return [pb.InferenceResponse([again, pb.Tensor("MORE", a)])]
                                """).input("X", x)).one();
                assertThat(response.requireOutput("OUT").floats()).isEqualTo(ones);
                assertThat(response.requireOutput("MORE").floats()).containsOnly(9);
                response.close();
            }
            assertThat(x.floats()).isEqualTo(ones);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {100, 20_000})
    void keepsInputsValidAsLongAsPythonHoldsThem(int n) {
        try (PythonServer server = PythonServer.scripted()) {
            for (int i = 0; i < 1000; i++) {
                float[] values = new float[n];
                java.util.Arrays.fill(values, i);
                server.send(server.code("scripted", """
                                x = tensor(requests[0])
                                i = int(x.as_numpy()[0])
                                if not hasattr(self, "held"):
                                    self.held = collections.deque(maxlen=100)
                                self.held.append((i, [x, x.as_numpy(), x.to_dlpack()][i % 3]))
                                for j, h in self.held:
                                    if isinstance(h, pb.Tensor):
                                        h = h.as_numpy() if j % 2 else pb.Tensor.from_dlpack("t", h.to_dlpack()).as_numpy()
                                    if isinstance(h, np.ndarray):
                                        assert h[0] == j == h[-1] and (h == j).all(), (j, h)
                                if i == 999:
                                    for j, h in self.held:
                                        if not isinstance(h, (pb.Tensor, np.ndarray)):
                                            a = pb.Tensor.from_dlpack("t", h).as_numpy()
                                            assert (a == j).all(), (j, a)
                                return [out("ok")]
                                """).input("X", Shape.of(n), values))
                        .one()
                        .close();
            }
        }
    }
}
