package dev.nereid.backend.python.execute;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of batchers, sequences, rescheduling, ensembles, the cache and warm-up, with a real Python. */
final class SchedulingIT {
    private static final String ITERATIVE =
            "max_batch_size: 4 sequence_batching { iterative_sequence: true oldest { } }";
    private static final String DECOUPLED = "model_transaction_policy { decoupled: true }";

    private static String text(ModelResponse response) {
        return response.requireOutput("OUT").strings().getFirst();
    }

    private static ModelRequest batched(PythonServer server, String model, String code) {
        return server.request(model).input("CODE", Shape.of(1, 1), PythonServer.program(code));
    }

    @Test
    void reschedulesUntilTheModelResponds() {
        String code = """
                answers = []
                for r in requests:
                    self.counts = getattr(self, "counts", collections.Counter())
                    self.counts[r.request_id()] += 1
                    if self.counts[r.request_id()] < 5:
                        r.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                        answers.append(None)
                    else:
                        a = tensor(r).as_numpy()
                        answers.append(out(f"{r.request_id()} {self.counts[r.request_id()]} {a.sum()}"))
                return answers
                """;
        try (PythonServer server =
                PythonServer.serve("again", PythonServer.SCRIPTED_CONFIG + ITERATIVE, PythonServer.SCRIPTED)) {
            List<ReceivedResponses> sent = IntStream.range(0, 8)
                    .mapToObj(i -> server.send(batched(server, "again", code)
                            .id("r" + i)
                            .input("X", Shape.of(1, 20_000), new float[20_000])))
                    .toList();
            for (int i = 0; i < 8; i++) {
                assertThat(text(sent.get(i).one())).isEqualTo("r" + i + " 5 0.0");
            }
        }
    }

    @Test
    void reschedulesStreams() {
        String code = """
                for r in requests:
                    self.counts = getattr(self, "counts", collections.Counter())
                    n = self.counts[r.request_id()]
                    self.counts[r.request_id()] += 1
                    s = r.get_response_sender()
                    s.send(out(f"{r.request_id()} {n}"))
                    if n == 9:
                        s.send(flags=1)
                    else:
                        r.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                """;
        try (PythonServer server = PythonServer.serve(
                "again", PythonServer.SCRIPTED_CONFIG + ITERATIVE + DECOUPLED, PythonServer.SCRIPTED)) {
            List<ReceivedResponses> sent = IntStream.range(0, 8)
                    .mapToObj(i -> server.send(batched(server, "again", code).id("r" + i)))
                    .toList();
            for (int i = 0; i < 8; i++) {
                String id = "r" + i + " ";
                assertThat(sent.get(i).all())
                        .extracting(SchedulingIT::text)
                        .isEqualTo(IntStream.range(0, 10).mapToObj(n -> id + n).toList());
            }
        }
    }

    @Test
    void refusesWrongUsesOfRescheduling() {
        try (PythonServer server = PythonServer.builder()
                .model("plain", PythonServer.SCRIPTED_CONFIG, PythonServer.SCRIPTED)
                .model("streams", PythonServer.SCRIPTED_CONFIG + DECOUPLED, PythonServer.SCRIPTED)
                .model("again", PythonServer.SCRIPTED_CONFIG + ITERATIVE, PythonServer.SCRIPTED)
                .start()) {
            String text = "Failed to release request: Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,"
                    + " while the model is not configured to handle such a flag.";
            BackendException error = server.send(
                            server.code("plain", "requests[0].set_release_flags(2); return [None]"))
                    .error();
            assertThat(error).hasMessage(text);
            assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
            PythonServer.await("log", () -> !server.log().lines(text).isEmpty());
            assertThat(server.send(server.code("streams", "requests[0].set_release_flags(2)"))
                            .error())
                    .hasMessage(text);
            assertThat(server.send(batched(server, "again", "requests[0].set_release_flags(2); return [out('x')]"))
                            .error())
                    .hasMessageStartingWith(
                            "Failed to process the request(s) for model 'again_0', message: Expected a None"
                                    + " object in the execute function return list for reschduled request, found type");
            assertThat(server.send(batched(server, "again", "requests[0].set_release_flags(2); raise ValueError('x')"))
                            .error())
                    .hasMessageContaining("ValueError: x");
            assertThat(text(server.send(batched(server, "again", "return [out('fine') for r in requests]"))
                            .one()))
                    .isEqualTo("fine");
        }
    }

    private static final String SEQUENCES = """
            max_batch_size: 4
            sequence_batching {
              %s
              control_input [
                { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
                { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
                { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] },
                { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: %s } ] } ]
            }
            """;

    /** Sums by correlation id, and checks controls against flags. */
    private static final String SUMS = """
            import numpy as np
            import triton_python_backend_utils as pb


            class TritonPythonModel:
                def initialize(self, args):
                    self.sums, self.nulls = {}, 0

                def execute(self, requests):
                    responses = []
                    for r in requests:
                        value = lambda n: pb.get_input_tensor_by_name(r, n).as_numpy().reshape(-1)[0]
                        if not value("READY"):
                            self.nulls += 1
                            assert value("X") == 0 and value("START") == 0
                            responses.append(pb.InferenceResponse([pb.Tensor("SUM", np.zeros((1, 1), np.float32))]))
                            continue
                        id = value("ID")
                        id = id.decode() if isinstance(id, bytes) else int(id)
                        assert id == r.correlation_id() and type(id) == type(r.correlation_id()), (id, r.correlation_id())
                        assert value("START") == (r.flags() & pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START), r.flags()
                        assert value("END") * 2 == (r.flags() & pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END), r.flags()
                        if value("START"):
                            self.sums[id] = 0
                        self.sums[id] += value("X")
                        total = np.array([[self.sums[id]]], np.float32)
                        if value("END"):
                            del self.sums[id]
                        responses.append(pb.InferenceResponse([pb.Tensor("SUM", total)]))
                    return responses
            """;

    @ParameterizedTest
    @ValueSource(strings = {"direct { }", "oldest { max_candidate_sequences: 4 }"})
    void keepsStateOfSequences(String strategy) {
        String io = """
                input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
                output [ { name: "SUM" data_type: TYPE_FP32 dims: [ 1 ] } ]
                """;
        try (PythonServer server = PythonServer.builder()
                .model("numbers", io + SEQUENCES.formatted(strategy, "TYPE_UINT64"), SUMS)
                .model("texts", io + SEQUENCES.formatted(strategy, "TYPE_STRING"), SUMS)
                .start()) {
            for (String model : List.of("numbers", "texts")) {
                List<ReceivedResponses> sent = new ArrayList<>();
                for (int step = 0; step < 5; step++) {
                    for (int s = 1; s <= 6; s++) {
                        boolean start = step == 0;
                        boolean end = step == 4;
                        Sequence sequence = model.equals("texts")
                                ? Sequence.of("séquence " + s, start, end)
                                : Sequence.of(s == 6 ? -1L >>> 1 : s, start, end);
                        sent.add(server.send(
                                server.request(model).sequence(sequence).input("X", Shape.of(1, 1), (float)
                                        (s * 10 + step))));
                    }
                }
                int next = 0;
                for (int step = 0; step < 5; step++) {
                    for (int s = 1; s <= 6; s++) {
                        float expected = 0;
                        for (int i = 0; i <= step; i++) {
                            expected += s * 10 + i;
                        }
                        assertThat(sent.get(next++).one().requireOutput("SUM").floats())
                                .containsExactly(expected);
                    }
                }
            }
        }
    }

    @Test
    void showsWhatARequestHas() {
        try (PythonServer server = PythonServer.builder()
                .model("scripted", PythonServer.SCRIPTED_CONFIG, PythonServer.SCRIPTED)
                .model(
                        "sequences",
                        PythonServer.SCRIPTED_CONFIG + "max_batch_size: 1 sequence_batching { oldest { } }",
                        PythonServer.SCRIPTED)
                .start()) {
            String code = """
                    r = requests[0]
                    return [out(json.dumps([r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters(),
                        sorted(r.requested_output_names()), [i.name() for i in r.inputs()], r.trace().get_context()]))]
                    """;
            assertThat(text(server.send(server.code("scripted", code)).one()))
                    .isEqualTo("[\"\", 0, 0, 0, \"{}\", [\"MORE\", \"OUT\"], [\"CODE\"], null]");
            ModelRequest request = server.code("scripted", code)
                    .id("ä 7")
                    .timeoutMicros(123_456_789)
                    .parameter("t", "ü\"\\\n")
                    .parameter("b", true)
                    .parameter("i", Long.MIN_VALUE)
                    .parameter("d", 0.25)
                    .output("OUT")
                    .input("X", Shape.of(0), new float[0]);
            String answer = text(server.send(request).one());
            assertThat(answer)
                    .startsWith("[\"\\u00e4 7\", 0, 0, 123456789, ")
                    .endsWith(", [\"OUT\"], [\"CODE\", \"X\"], null]");
            assertThat(answer).contains("-9223372036854775808", "0.25", "true");
            assertThat(text(server.send(batched(server, "sequences", code).sequence(Sequence.of("ß", true, true)))
                            .one()))
                    .startsWith("[\"\", \"\\u00df\", 3, 0, ");
            assertThat(text(server.send(batched(server, "sequences", code).sequence(Sequence.of(77, true, false)))
                            .one()))
                    .startsWith("[\"\", 77, 1, 0, ");
            assertThat(text(server.send(batched(server, "sequences", code).sequence(Sequence.of(77, false, true)))
                            .one()))
                    .startsWith("[\"\", 77, 2, 0, ");
        }
    }

    @Test
    void leavesOutOptionalInputsAndOutputs() {
        try (PythonServer server = PythonServer.scripted()) {
            String code = """
                    a = np.zeros(3, dtype=np.float32)
                    return [pb.InferenceResponse([pb.Tensor("MORE", a), pb.Tensor("OUT",
                        np.array([str(tensor(requests[0]) is None).encode()], dtype=object))])]
                    """;
            ModelResponse all = server.send(server.code("scripted", code)).one();
            assertThat(all.outputs()).containsExactlyInAnyOrder("MORE", "OUT");
            assertThat(text(all)).isEqualTo("True");
            ModelResponse one = server.send(
                            server.code("scripted", code).output("OUT").input("X", Shape.of(1), 1f))
                    .one();
            assertThat(one.outputs()).containsExactly("OUT");
            assertThat(text(one)).isEqualTo("False");
        }
    }

    @Test
    void passesParametersOfResponses() {
        try (PythonServer server = PythonServer.builder()
                .model("scripted", PythonServer.SCRIPTED_CONFIG, PythonServer.SCRIPTED)
                .model("streams", PythonServer.SCRIPTED_CONFIG + DECOUPLED, PythonServer.SCRIPTED)
                .start()) {
            ModelResponse response = server.run("""
                    return [pb.InferenceResponse([pb.Tensor("OUT", np.zeros(1, np.float32))], parameters={
                        "t": "ä", "i": -5, "b": True, "big": 2**63 - 1})]
                    """);
            assertThat(response.parameters().asMap())
                    .containsEntry("t", "ä")
                    .containsEntry("i", -5L)
                    .containsEntry("b", true)
                    .containsEntry("big", Long.MAX_VALUE);
            List<ModelResponse> stream =
                    server.send(server.code("streams", """
                            s = requests[0].get_response_sender()
                            for i in range(3):
                                s.send(pb.InferenceResponse([pb.Tensor("OUT", np.zeros(1))], parameters={"i": i}))
                            s.send(flags=1)
                            """)).all();
            assertThat(stream)
                    .extracting(one -> one.parameters().asMap().get("i"))
                    .containsExactly(0L, 1L, 2L);
            for (List<String> wrong : List.of(
                    List.of("{1: 'a'}", "Expect parameters keys to have type str, found type <class 'int'>"),
                    List.of(
                            "{'a': 1.5}",
                            "Expect parameters values to have type bool/int/str, found type <class 'float'>"),
                    List.of(
                            "{'a': None}",
                            "Expect parameters values to have type bool/int/str, found type <class 'NoneType'>"),
                    List.of(
                            "{'a': [1]}",
                            "Expect parameters values to have type bool/int/str, found type <class 'list'>"),
                    List.of("[1]", "got <class 'list'>"))) {
                assertThat(server.send(server.code(
                                        "scripted",
                                        "return [pb.InferenceResponse([], parameters=" + wrong.getFirst() + ")]"))
                                .error())
                        .hasMessageContaining(wrong.get(1));
            }
        }
    }

    @Test
    void executesSeveralRequestsWithTheirOwnShapes() {
        String config = """
                max_batch_size: 16
                input [ { name: "CODE" data_type: TYPE_STRING dims: [ 1 ] },
                        { name: "X" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]
                output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] } ]
                dynamic_batching { preferred_batch_size: [ 6 ] max_queue_delay_microseconds: 60000000 }
                """;
        try (PythonServer server = PythonServer.serve("ragged", config, PythonServer.SCRIPTED)) {
            String code = """
                    shapes = [tensor(r).shape() for r in requests]
                    return [pb.InferenceResponse([pb.Tensor("OUT", np.array(
                        [[f"{shapes} {a.sum()}".encode()]] * len(a), dtype=object))])
                        for a in [tensor(r).as_numpy() for r in requests]]
                    """;
            List<ReceivedResponses> sent = new ArrayList<>();
            for (int i = 1; i <= 3; i++) {
                String[] codes = new String[i];
                java.util.Arrays.fill(codes, PythonServer.program(code));
                float[] values = new float[i * i * 5000];
                java.util.Arrays.fill(values, i);
                sent.add(server.send(server.request("ragged")
                        .input("CODE", Shape.of(i, 1), codes)
                        .input("X", Shape.of(i, i * 5000L), values)));
            }
            for (int i = 1; i <= 3; i++) {
                assertThat(sent.get(i - 1).one().requireOutput("OUT").strings())
                        .hasSize(i)
                        .containsOnly("[[1, 5000], [2, 10000], [3, 15000]] " + i * i * i * 5000 + ".0");
            }
        }
    }

    @Test
    void runsAsStepsOfAnEnsemble() {
        String step = """
                input [ { name: "IN" data_type: %s dims: [ -1 ] } ] output [ { name: "OUT" data_type: %s dims: [ -1 ] } ]
                """;
        String split = """
                import numpy as np
                import triton_python_backend_utils as pb


                class TritonPythonModel:
                    def execute(self, requests):
                        return [pb.InferenceResponse([pb.Tensor("OUT", np.array(
                            [len(w) for w in r.inputs()[0].as_numpy()[0].decode().split()], np.int64))]) for r in requests]
                """;
        String sum = """
                import numpy as np
                import triton_python_backend_utils as pb


                class TritonPythonModel:
                    def execute(self, requests):
                        return [pb.InferenceResponse([pb.Tensor("OUT", np.array([r.inputs()[0].as_numpy().sum()]))])
                                for r in requests]
                """;
        String ensemble = """
                platform: "ensemble"
                input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
                output [ { name: "SUM" data_type: TYPE_INT64 dims: [ 1 ] } ]
                ensemble_scheduling { step [
                  { model_name: "split" model_version: -1
                    input_map { key: "IN" value: "TEXT" } output_map { key: "OUT" value: "lengths" } },
                  { model_name: "sum" model_version: -1
                    input_map { key: "IN" value: "lengths" } output_map { key: "OUT" value: "SUM" } } ] }
                """;
        try (PythonServer server = PythonServer.builder()
                .model("split", step.formatted("TYPE_STRING", "TYPE_INT64"), split)
                .model("sum", step.formatted("TYPE_INT64", "TYPE_INT64"), sum)
                .model("both", ensemble)
                .start()) {
            for (int i = 1; i < 100; i++) {
                String text = "abc ".repeat(i * 100);
                ModelResponse response = server.send(server.request("both").input("TEXT", Shape.of(1), text))
                        .one();
                assertThat(response.requireOutput("SUM").longs()).containsExactly(300L * i);
            }
            assertThat(server.send(server.request("both").input("TEXT", Shape.of(1), new String(new char[] {0xd800})))
                            .one()
                            .requireOutput("SUM")
                            .longs())
                    .containsExactly(1);
        }
    }

    @Test
    void servesFromTheResponseCacheAndWarmsUp() {
        String config = PythonServer.config("TYPE_STRING", "") + """
                response_cache { enable: true }
                model_warmup [ { name: "w" batch_size: 1 count: 3
                  inputs { key: "CODE" value: { data_type: TYPE_STRING dims: [ 1 ] input_data_file: "code" } } } ]
                """;
        String warm = PythonServer.program("self.warm = getattr(self, 'warm', 0) + 1\nreturn [out('warm')]");
        byte[] bytes = warm.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        assertThat(bytes.length).isLessThan(128); // the length is one byte in UTF-8
        String length = new String(new char[] {(char) bytes.length, 0, 0, 0});
        try (PythonServer server = PythonServer.builder()
                .model("scripted", config, PythonServer.SCRIPTED)
                .file("scripted", "warmup/code", length + warm)
                .options(options -> options.cache = Optional.of(CacheOptions.local(1 << 20)))
                .start()) {
            String code = """
                    self.count = getattr(self, "count", 0) + 1
                    return [out(f"{self.count} {self.warm}")]
                    """;
            assertThat(server.runText(code)).isEqualTo("1 3");
            assertThat(server.runText(code)).isEqualTo("1 3");
            assertThat(server.runText(code + " #")).isEqualTo("2 3");
        }
    }
}
