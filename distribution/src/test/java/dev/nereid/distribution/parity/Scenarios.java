package dev.nereid.distribution.parity;

import static dev.nereid.distribution.parity.Protocol.GRPC;
import static dev.nereid.distribution.parity.Protocol.HTTP_BINARY;
import static dev.nereid.distribution.parity.Protocol.HTTP_JSON;
import static dev.nereid.distribution.testing.TensorBytes.floats;
import static dev.nereid.distribution.testing.TensorBytes.ints;
import static dev.nereid.distribution.testing.TensorBytes.strings;

import dev.nereid.api.InputTensor;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The scenarios of every protocol, and their models. */
final class Scenarios {
    static final String PAIR = "pair";
    static final String CLASSES = "classes";
    static final String VERSIONS = "versions";
    static final String SQUARE = "square";
    static final String REPEAT = "repeat";
    static final String OPTIONAL = "optional";
    static final String DEEP = "deep";
    private static final String DEEP_DIMS = "[ -1" + ", -1".repeat(InputTensor.MAX_DIMENSIONS - 1) + " ]";
    private static final int MANY_WORDS = 300;
    private static final byte[] FOUR = floats(1, 2, 3, 4);

    private Scenarios() {}

    static List<Scenario> all() {
        return Stream.of(
                        ScenarioTypes.all(),
                        words(),
                        outputs(),
                        ids(),
                        parameters(),
                        versions(),
                        decoupled(),
                        classes(),
                        ScenarioErrors.all())
                .flatMap(scenarios -> scenarios)
                .toList();
    }

    /** Creates the models. */
    static Repository models(Path directory) throws IOException {
        Repository models = new Repository(directory);
        for (String type : ScenarioTypes.TYPES) {
            String name = type.equals("BYTES") ? "STRING" : type;
            models.model(ScenarioTypes.batching(type), Repository.identity(8, name, "[ -1 ]", ""));
            models.model(ScenarioTypes.flat(type), Repository.identity(0, name, "[ -1, -1 ]", ""));
        }
        models.model(DEEP, Repository.identity(0, "FP32", DEEP_DIMS, ""));
        models.model(PAIR, pair(""));
        models.model(OPTIONAL, pair(" optional: true"));
        models.model(VERSIONS, Repository.identity(8, "FP32", "[ -1 ]", "version_policy { all { } }\n"));
        Files.createDirectories(directory.resolve(VERSIONS).resolve("3"));
        models.model(
                CLASSES,
                Repository.identity(8, "FP32", "[ 4 ]", "")
                        .replace("output [ { ", "output [ { label_filename: \"labels.txt\" "));
        Files.writeString(directory.resolve(CLASSES).resolve("labels.txt"), "ant\nbee\ncat\n");
        for (String decoupled : List.of(SQUARE, REPEAT)) {
            models.copyOf(TestPaths.checkout().resolve("examples/plugin-models").resolve(decoupled));
            Files.createDirectories(directory.resolve(decoupled).resolve("1"));
        }
        return models;
    }

    private static String pair(String second) {
        return "backend: \"identity\"\nmax_batch_size: 8\n"
                + "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 4 ] },"
                + " { name: \"INPUT1\" data_type: TYPE_FP32 dims: [ -1 ]" + second + " } ]\n"
                + "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 4 ] },"
                + " { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: [ -1 ] } ]\n";
    }

    /** Returns a request that is right, for a model of floats that batches. */
    static Scenario good(String name) {
        return Scenario.of(name, ScenarioTypes.batching("FP32")).in("INPUT0", "FP32", FOUR, 1, 4);
    }

    /** Returns a request that is right, for the model with two inputs. */
    static Scenario goodPair(String name) {
        return Scenario.of(name, PAIR)
                .in("INPUT0", "INT32", ints(1, -2, 3, -4), 1, 4)
                .in("INPUT1", "FP32", FOUR, 1, 4);
    }

    private static Stream<Scenario> words() {
        String model = ScenarioTypes.batching("BYTES");
        String[] many = new String[MANY_WORDS];
        for (int i = 0; i < many.length; i++) {
            many[i] = "word " + i;
        }
        byte[] notText = strings("abcd");
        notText[4] = (byte) 0xFF;
        notText[5] = (byte) 0xC0;
        notText[6] = (byte) 0x80;
        notText[7] = 0;
        return Stream.of(
                Scenario.of("an empty string", model).in("INPUT0", "BYTES", strings(""), 1, 1),
                Scenario.of("empty strings among others", model)
                        .in("INPUT0", "BYTES", strings("", "a", "", "", "b"), 1, 5),
                Scenario.of("strings beyond ASCII", model).in("INPUT0", "BYTES", strings("é", "世界", "😀"), 1, 3),
                Scenario.of("quotes and backslashes", model)
                        .in("INPUT0", "BYTES", strings("\"", "\\", "\\\"\\", "/"), 1, 4),
                Scenario.of("control characters", model)
                        .in("INPUT0", "BYTES", strings("\b\f\n\r\t", "\0", "\u0001\u001f", "\u007f"), 1, 4),
                Scenario.of("bytes that are no text", model).in("INPUT0", "BYTES", notText, 1, 1),
                Scenario.of("a long string", model).in("INPUT0", "BYTES", strings("0123456789".repeat(5000)), 1, 1),
                Scenario.of("many strings", model).in("INPUT0", "BYTES", strings(many), 1, MANY_WORDS),
                Scenario.of("text that looks like JSON", model)
                        .in("INPUT0", "BYTES", strings("{\"a\":[1,2]}", "null", "NaN"), 3, 1));
    }

    private static Stream<Scenario> outputs() {
        byte[] integers = ints(1, -2, 3, -4);
        return Stream.of(
                goodPair("all outputs"),
                goodPair("the first output").out("OUTPUT0").responds(integers),
                goodPair("the second output").out("OUTPUT1").responds(FOUR),
                goodPair("both outputs").out("OUTPUT0").out("OUTPUT1"),
                goodPair("both outputs in another order").out("OUTPUT1").out("OUTPUT0"),
                Scenario.of("inputs in another order", PAIR)
                        .in("INPUT1", "FP32", FOUR, 1, 4)
                        .in("INPUT0", "INT32", integers, 1, 4)
                        .responds(integers),
                Scenario.of("an optional input left out", OPTIONAL)
                        .in("INPUT0", "INT32", integers, 1, 4)
                        .responds(integers),
                Scenario.of("an optional input given", OPTIONAL)
                        .in("INPUT0", "INT32", integers, 1, 4)
                        .in("INPUT1", "FP32", FOUR, 1, 4));
    }

    private static Stream<Scenario> ids() {
        return Stream.of(
                good("an id").withId("request-1"),
                good("an id with quotes and backslashes").withId("a \"quoted\" \\ id"),
                good("an id beyond ASCII").withId("é世界😀"),
                good("a long id").withId("0123456789".repeat(100)),
                good("an id that looks like a number").withId("18446744073709551616"));
    }

    private static Stream<Scenario> parameters() {
        return Stream.of(
                good("a parameter that is a text").withParameter("mode", "fast"),
                good("a parameter that is empty").withParameter("mode", ""),
                good("a parameter that is a number").withParameter("level", Long.MIN_VALUE),
                good("a parameter that is a fraction").withParameter("rate", 0.25),
                good("a parameter that is true or false").withParameter("quiet", true),
                good("several parameters")
                        .withParameter("a", 1L)
                        .withParameter("b", "é\"")
                        .withParameter("c", false),
                good("a priority").withParameter("priority", 1L),
                good("a timeout").withParameter("timeout", 60_000_000L));
    }

    private static Stream<Scenario> versions() {
        Scenario versions = Scenario.of("the latest version", VERSIONS).in("INPUT0", "FP32", FOUR, 1, 4);
        return Stream.of(
                versions,
                versions("the first version").withVersion("1"),
                versions("the last version").withVersion("3"),
                versions("a version with zeros in front").withVersion("003"),
                versions("a version that is not there")
                        .withVersion("2")
                        .fails(ErrorCode.NOT_FOUND, "Request for unknown model: 'versions' version 2 is not found"),
                versions("version zero")
                        .withVersion("0")
                        .fails(ErrorCode.NOT_FOUND, "Request for unknown model: 'versions' version 0 is not found"),
                versions("a version too large for a number")
                        .withVersion("9223372036854775808")
                        .fails(ErrorCode.INVALID_ARGUMENT, "failed to get model version from specified version string"),
                versions("a version that is no number")
                        .withVersion("one")
                        .fails(ErrorCode.INVALID_ARGUMENT, "failed to get model version from specified version string")
                        .not("there is no path for such a version", HTTP_JSON, HTTP_BINARY),
                versions("a negative version")
                        .withVersion("-2")
                        .fails(ErrorCode.INVALID_ARGUMENT, "invalid model version specified")
                        .not("there is no path for such a version", HTTP_JSON, HTTP_BINARY));
    }

    private static Scenario versions(String name) {
        return Scenario.of(name, VERSIONS).in("INPUT0", "FP32", FOUR, 1, 4);
    }

    private static Stream<Scenario> decoupled() {
        byte[][] three = {ints(3), ints(3), ints(3)};
        return Stream.of(
                        Scenario.of("no response", SQUARE)
                                .in("IN", "INT32", ints(0), 1)
                                .responds(),
                        Scenario.of("one response of a decoupled model", SQUARE)
                                .in("IN", "INT32", ints(1), 1)
                                .responds(ints(1)),
                        Scenario.of("three responses", SQUARE)
                                .withId("three")
                                .in("IN", "INT32", ints(3), 1)
                                .responds(three),
                        Scenario.of("responses that differ", REPEAT)
                                .in("IN", "INT32", ints(7, -8), 2)
                                .in("DELAY", "UINT32", ints(1, 0), 2)
                                .in("WAIT", "UINT32", ints(0), 1)
                                .responds(ints(7), ints(-8)),
                        Scenario.of("one output of many responses", REPEAT)
                                .in("IN", "INT32", ints(7, -8), 2)
                                .in("DELAY", "UINT32", ints(0, 0), 2)
                                .in("WAIT", "UINT32", ints(0), 1)
                                .out("IDX")
                                .responds(ints(0), ints(1)))
                .map(scenario -> scenario.but(
                                HTTP_JSON,
                                ErrorCode.UNSUPPORTED,
                                "HTTP end point doesn't support models with decoupled transaction policy")
                        .but(
                                HTTP_BINARY,
                                ErrorCode.UNSUPPORTED,
                                "HTTP end point doesn't support models with decoupled transaction policy")
                        .but(
                                GRPC,
                                ErrorCode.UNSUPPORTED,
                                "ModelInfer RPC doesn't support models with decoupled transaction policy"));
    }

    private static Stream<Scenario> classes() {
        byte[] scores = floats(0.25f, 4, -1, 2);
        byte[] two = floats(0.25f, 4, -1, 2, 9, 8, 7, 6);
        return Stream.of(
                classified("the first class", 1, scores, 1).responds(strings("4.000000:1:bee")),
                classified("three classes", 3, scores, 1)
                        .responds(strings("4.000000:1:bee", "2.000000:3", "0.250000:0:ant")),
                classified("all classes", 4, scores, 1)
                        .responds(strings("4.000000:1:bee", "2.000000:3", "0.250000:0:ant", "-1.000000:2:cat")),
                classified("more classes than there are", 9, scores, 1)
                        .responds(strings("4.000000:1:bee", "2.000000:3", "0.250000:0:ant", "-1.000000:2:cat")),
                classified("classes of a batch", 2, two, 2)
                        .responds(strings("4.000000:1:bee", "2.000000:3", "9.000000:0:ant", "8.000000:1:bee")),
                Scenario.of("classes of strings", ScenarioTypes.batching("BYTES"))
                        .in("INPUT0", "BYTES", strings("a"), 1, 1)
                        .out("OUTPUT0", 1)
                        .fails(ErrorCode.INVALID_ARGUMENT, ""));
    }

    private static Scenario classified(String name, long classes, byte[] scores, long batch) {
        return Scenario.of(name, CLASSES).in("INPUT0", "FP32", scores, batch, 4).out("OUTPUT0", classes);
    }
}
