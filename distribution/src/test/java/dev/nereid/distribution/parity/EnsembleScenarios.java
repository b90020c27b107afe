package dev.nereid.distribution.parity;

import static dev.nereid.distribution.parity.Protocol.EMBEDDED;
import static dev.nereid.distribution.parity.Protocol.GRPC;
import static dev.nereid.distribution.parity.Protocol.HTTP_BINARY;
import static dev.nereid.distribution.parity.Protocol.HTTP_JSON;
import static dev.nereid.distribution.testing.ScriptedModels.TENSORS;
import static dev.nereid.distribution.testing.ScriptedModels.in;
import static dev.nereid.distribution.testing.ScriptedModels.optional;
import static dev.nereid.distribution.testing.ScriptedModels.out;
import static dev.nereid.distribution.testing.ScriptedModels.stepOf;
import static dev.nereid.distribution.testing.ScriptedModels.steps;
import static dev.nereid.distribution.testing.TensorBytes.floats;
import static dev.nereid.distribution.testing.TensorBytes.strings;

import dev.nereid.distribution.testing.ScriptedModels;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Scenarios of ensembles for every protocol, and their models. */
final class EnsembleScenarios {
    private static final String DECOUPLED = "model_transaction_policy { decoupled: true }\n";
    private static final String SEQUENCES_ELSEWHERE = "the scenarios of the port have no sequences";

    private EnsembleScenarios() {}

    /** Returns the settings of a model with sequences whose ids have a type. */
    private static String sequences(String type) {
        return """
            sequence_batching {
              max_sequence_idle_microseconds: 60000000
              oldest { }
              control_input [
                { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
                { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_%s } ] }
              ]
            }
            """.formatted(type);
    }

    static List<Scenario> all() {
        return Stream.of(values(), errors(), decoupled(), sequences())
                .flatMap(scenarios -> scenarios)
                .toList();
    }

    /** Creates the models. */
    static ScriptedModels models(Path directory) throws IOException {
        ScriptedModels models = new ScriptedModels(directory)
                .withChain()
                .model("left", 1_000, TENSORS + times())
                .model("right", 2_000, TENSORS + times())
                .ensemble(
                        "fork",
                        "max_batch_size: 8\n" + in("INPUT0") + out("LEFT") + out("RIGHT") + times("LEFT")
                                + times("RIGHT"),
                        stepOf("first", "INPUT0=INPUT0", "OUTPUT0=both")
                                + stepOf("left", "INPUT0=both", "OUTPUT0=LEFT,TIMES=LEFT_TIMES")
                                + stepOf("right", "INPUT0=both", "OUTPUT0=RIGHT,TIMES=RIGHT_TIMES"))
                .model("plus", 0, TENSORS + optional("INPUT1"))
                .ensemble(
                        "join",
                        TENSORS + optional("INPUT1"),
                        stepOf("plus", "INPUT0=INPUT0,INPUT1=INPUT1", "OUTPUT0=sum")
                                + stepOf("second", "INPUT0=sum", "OUTPUT0=OUTPUT0"))
                .ensemble(
                        "detour",
                        TENSORS,
                        stepOf("first", "INPUT0=INPUT0", "OUTPUT0=more")
                                + stepOf("plus", "INPUT0=INPUT0,INPUT1=more", "OUTPUT0=OUTPUT0"))
                .chain("nested", "third", "chain", "first")
                .model("flat", 5, TENSORS.replace("max_batch_size: 8", "max_batch_size: 0"))
                .chain("mixed", "first", "flat", "second")
                .ensemble(
                        "labeled",
                        TENSORS.replace("output {", "output { label_filename: \"labels.txt\""),
                        steps("first", "second"))
                .step("bounded", 0, """
                        instance_group { count: 1 kind: KIND_CPU }
                        dynamic_batching { default_queue_policy { max_queue_size: 1 } }
                        """)
                .chain("queued", "first", "bounded", "third")
                .ensemble("cached", TENSORS + "response_cache { enable: true }\n", steps("first", "second"))
                .ensemble(
                        "limited",
                        "max_batch_size: 8\n" + in("INPUT0") + out("OUTPUT0") + times(),
                        "max_inflight_requests: 1\n"
                                + stepOf("first", "INPUT0=INPUT0", "OUTPUT0=more")
                                + stepOf("left", "INPUT0=more", "OUTPUT0=OUTPUT0,TIMES=TIMES"))
                .step("batch_one", 1, "instance_group { count: 1 kind: KIND_CPU }\ndynamic_batching { }\n")
                .step("batch_two", 2, "instance_group { count: 1 kind: KIND_CPU }\ndynamic_batching { }\n")
                .chain("batches", "batch_one", "batch_two")
                .step("cut", 3, "")
                .chain("cutting", "cut", "first")
                .step("swapped", 10, "")
                .chain("swapping", "first", "swapped")
                .model("many", 0, "max_batch_size: 0\n" + in("INPUT0") + out("OUTPUT0") + DECOUPLED)
                .ensemble(
                        "stream",
                        "max_batch_size: 0\n" + in("INPUT0") + out("OUTPUT0") + out("BEFORE") + DECOUPLED,
                        stepOf("flat", "INPUT0=INPUT0", "OUTPUT0=BEFORE")
                                + stepOf("many", "INPUT0=INPUT0", "OUTPUT0=each")
                                + stepOf("flat", "INPUT0=each", "OUTPUT0=OUTPUT0"))
                .model("info", 0, TENSORS + out("INFO") + out("DEADLINE"))
                .ensemble(
                        "informed",
                        TENSORS + out("INFO") + out("DEADLINE"),
                        stepOf("first", "INPUT0=INPUT0", "OUTPUT0=more")
                                + stepOf("info", "INPUT0=more", "OUTPUT0=OUTPUT0,INFO=INFO,DEADLINE=DEADLINE"));
        for (String type : List.of("UINT64", "STRING")) {
            models.model(
                            "sum_" + type,
                            0,
                            TENSORS + out("SUM") + "instance_group { count: 1 kind: KIND_CPU }\n" + sequences(type))
                    .ensemble(
                            "sequence_" + type,
                            TENSORS,
                            stepOf("first", "INPUT0=INPUT0", "OUTPUT0=more")
                                    + stepOf("sum_" + type, "INPUT0=more", "SUM=sum")
                                    + stepOf("third", "INPUT0=sum", "OUTPUT0=OUTPUT0"));
        }
        Files.writeString(models.repository().directory().resolve("labeled/labels.txt"), "ant\nbee\ncat\n");
        return models;
    }

    private static String times() {
        return "output { name: \"TIMES\" data_type: TYPE_INT64 dims: [ 2 ] }\n";
    }

    private static String times(String branch) {
        return times().replace("TIMES", branch + "_TIMES");
    }

    private static Scenario scenario(String name, String ensemble, float... values) {
        return Scenario.of(name, ensemble).in("INPUT0", "FP32", floats(values), 1, values.length);
    }

    private static Stream<Scenario> values() {
        byte[] one = floats(1);
        return Stream.of(
                scenario("a chain", "chain", 1, 2).responds(floats(112, 113)),
                scenario("a chain, an id", "chain", 1).withId("some id").responds(floats(112)),
                Scenario.of("a chain, a batch of three", "chain")
                        .in("INPUT0", "FP32", floats(1, 2, 3, 4, 5, 6), 3, 2)
                        .responds(floats(112, 113, 114, 115, 116, 117)),
                scenario("a fork, one branch", "fork", 1).out("LEFT").responds(floats(1_002)),
                scenario("a fork, the other branch", "fork", 1).out("RIGHT").responds(floats(2_002)),
                scenario("a fork, both branches", "fork", 1)
                        .out("RIGHT")
                        .out("LEFT")
                        .responds(floats(1_002)),
                scenario("a join", "join", 1)
                        .in("INPUT1", "FP32", floats(5), 1, 1)
                        .responds(floats(16)),
                scenario("a join, the optional input omitted", "join", 1).responds(floats(11)),
                scenario("a join, the optional output omitted", "detour", 1)
                        .withParameter("first", "omit")
                        .responds(one),
                scenario("a join with the input of the ensemble", "detour", 1).responds(floats(3)),
                scenario("an ensemble as a step", "nested", 1).responds(floats(213)),
                scenario("models with batches and without", "mixed", 1).responds(floats(17)),
                scenario("classes of an output", "labeled", 3, 1, 2)
                        .out("OUTPUT0", 2)
                        .responds(strings("14.000000:0:ant", "13.000000:2:cat")),
                scenario("a latest version", "chain", 1).withVersion("1").responds(floats(112)),
                scenario("a parameter that no model knows", "chain", 1)
                        .withParameter("unknown", 5L)
                        .responds(floats(112)));
    }

    private static Stream<Scenario> errors() {
        return Stream.of(
                scenario("the first step fails", "chain", 1)
                        .withParameter("first", "fail")
                        .fails(ErrorCode.INTERNAL, "in ensemble 'chain', the script fails (step 'first')"),
                scenario("the second step fails", "chain", 1)
                        .withParameter("second", "fail")
                        .fails(ErrorCode.INTERNAL, "in ensemble 'chain', the script fails (step 'second')"),
                scenario("the last step fails", "chain", 1)
                        .withParameter("third", "fail")
                        .fails(ErrorCode.INTERNAL, "in ensemble 'chain', the script fails (step 'third')"),
                scenario("a branch fails", "fork", 1)
                        .withParameter("left", "fail")
                        .fails(ErrorCode.INTERNAL, "in ensemble 'fork', the script fails (step 'left')"),
                scenario("a branch fails that is not requested", "fork", 1)
                        .out("RIGHT")
                        .withParameter("left", "fail")
                        .responds(floats(2_002)),
                scenario("a step of a step fails", "nested", 1)
                        .withParameter("second", "fail")
                        .fails(
                                ErrorCode.INTERNAL,
                                "in ensemble 'nested', in ensemble 'chain', the script fails (step 'second')"),
                scenario("the second step omits its output", "chain", 1)
                        .withParameter("second", "omit")
                        .withId("7")
                        .fails(ErrorCode.INVALID_ARGUMENT, "in ensemble 'chain', "),
                Scenario.of("a shape that a step refuses", "mixed")
                        .in("INPUT0", "FP32", floats(1, 2), 2, 1)
                        .fails(ErrorCode.INVALID_ARGUMENT, "in ensemble 'mixed', "),
                Scenario.of("no input", "chain")
                        .fails(
                                ErrorCode.INVALID_ARGUMENT,
                                "[request id: <id_unknown>] expected 1 inputs but got 0 inputs for model 'chain'"),
                scenario("an unknown output", "chain", 1)
                        .out("OTHER")
                        .fails(ErrorCode.INVALID_ARGUMENT, "unexpected inference output 'OTHER' for model 'chain'"),
                scenario("an unknown version", "chain", 1)
                        .withVersion("2")
                        .fails(ErrorCode.NOT_FOUND, "Request for unknown model: 'chain' version 2"));
    }

    private static Scenario stream(String name, float count) {
        return Scenario.of(name, "stream")
                .in("INPUT0", "FP32", floats(count), 1)
                .not("has one response", HTTP_JSON, HTTP_BINARY, GRPC);
    }

    private static Stream<Scenario> decoupled() {
        return Stream.of(
                stream("no responses", 0).responds(),
                stream("one response", 1).responds(floats(6)),
                stream("three responses", 3).responds(floats(6), floats(7), floats(8)),
                stream("responses with what was before", 2)
                        .out("BEFORE")
                        .out("OUTPUT0")
                        .responds(floats(6), floats(7)),
                stream("an output that needs no decoupled step", 9)
                        .out("BEFORE")
                        .responds(floats(14)),
                stream("a decoupled step fails", 0)
                        .withParameter("many", "fail")
                        .fails(ErrorCode.INTERNAL, "in ensemble 'stream', the script fails (step 'many')"));
    }

    private static Stream<Scenario> sequences() {
        return Stream.concat(
                Stream.of(
                        scenario("a step without the sequence that its model needs", "sequence_UINT64", 1)
                                .fails(ErrorCode.INVALID_ARGUMENT, "in ensemble 'sequence_UINT64', "),
                        scenario("a step ends the sequence of later steps", "informed", 1)
                                .withParameter("first", "mark")
                                .out("INFO")
                                .responds(floats(0, 0, 77, 1, 1))),
                Stream.of(
                                scenario("a sequence with a number", "sequence_UINT64", 1)
                                        .withParameter("sequence_id", 5L),
                                scenario("a sequence with a string", "sequence_STRING", 1)
                                        .withParameter("sequence_id", "five"))
                        .map(scenario -> scenario.withParameter("sequence_start", true)
                                .withParameter("sequence_end", true)
                                .not(SEQUENCES_ELSEWHERE, EMBEDDED)
                                .responds(floats(102))));
    }
}
