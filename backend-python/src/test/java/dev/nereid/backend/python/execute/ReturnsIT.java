package dev.nereid.backend.python.execute;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of what {@code execute} returns, of models that run code of the test. Batches are of two requests. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class ReturnsIT {
    private static final String BATCHES = "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 2 ]"
            + " max_queue_delay_microseconds: 60000000 }";
    private static final String DECOUPLED = "model_transaction_policy { decoupled: true }";

    /** Runs a coroutine of the test. */
    private static final String COROUTINES = PythonServer.SCRIPTED
            .replace("    def execute(", "    async def execute(")
            .replace("return scope[", "return await scope[");

    private PythonServer server;

    @BeforeAll
    void start() {
        server = PythonServer.builder()
                .model("scripted", PythonServer.SCRIPTED_CONFIG, PythonServer.SCRIPTED)
                .model("pairs", PythonServer.SCRIPTED_CONFIG + BATCHES, PythonServer.SCRIPTED)
                .model("streams", PythonServer.SCRIPTED_CONFIG + DECOUPLED, PythonServer.SCRIPTED)
                .model("stream_pairs", PythonServer.SCRIPTED_CONFIG + DECOUPLED + BATCHES, PythonServer.SCRIPTED)
                .model("coroutines", PythonServer.SCRIPTED_CONFIG, COROUTINES)
                .model("coroutine_pairs", PythonServer.SCRIPTED_CONFIG + BATCHES, COROUTINES)
                .model("coroutine_streams", PythonServer.SCRIPTED_CONFIG + DECOUPLED, COROUTINES)
                .model("wrong", PythonServer.SCRIPTED_CONFIG, PythonServer.SCRIPTED)
                .model("nothing", PythonServer.SCRIPTED_CONFIG, "class TritonPythonModel:\n    pass\n")
                .start();
    }

    @AfterAll
    void close() {
        if (server != null) {
            server.close();
        }
    }

    /** Sends two requests that are executed together. */
    private List<ReceivedResponses> pair(String model, String code) {
        List<ReceivedResponses> sent = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            ModelRequest request =
                    server.request(model).id("r" + i).input("CODE", Shape.of(1, 1), PythonServer.program(code));
            sent.add(server.send(request));
        }
        return sent;
    }

    private static String failed(String instance) {
        return "Failed to process the request(s) for model '" + instance + "', message: ";
    }

    private static void assertError(ReceivedResponses received, ErrorCode code, String text) {
        BackendException error = received.error();
        assertThat(error.getMessage()).isEqualTo(text);
        assertThat(error.code()).isEqualTo(code);
    }

    private static String text(ModelResponse response) {
        return response.requireOutput("OUT").strings().getFirst();
    }

    @ParameterizedTest
    @CsvSource(
            quoteCharacter = '`',
            delimiter = '|',
            value = {
                "return (out('a'), out('b'))|Expected a list in the execute return, found type '<class 'tuple'>'.",
                "return out('a')|Expected a list in the execute return, found type '<class"
                        + " 'c_python_backend_utils.InferenceResponse'>'.",
                "return {}|Expected a list in the execute return, found type '<class 'dict'>'.",
                "return [out('a')]|Number of InferenceResponse objects do not match the number of InferenceRequest objects."
                        + " InferenceRequest(s) size is:2, and InferenceResponse(s) size is:1$",
                "return []|Number of InferenceResponse objects do not match the number of InferenceRequest objects."
                        + " InferenceRequest(s) size is:2, and InferenceResponse(s) size is:0$",
                "return [out('a'), 'b']|Expected an 'InferenceResponse' object in the execute function return list, found"
                        + " type '<class 'str'>'.",
                "return [out('a'), pb.Tensor('OUT', np.zeros(1))]|Expected an 'InferenceResponse' object in the execute"
                        + " function return list, found type '<class 'c_python_backend_utils.Tensor'>'.",
            })
    void failsAllRequestsAfterAWrongReturn(String code, String text) {
        for (ReceivedResponses received : pair("pairs", code)) {
            assertError(received, ErrorCode.INTERNAL, failed("pairs_0") + text.replace('$', '\n'));
        }
    }

    @Test
    void failsAllRequestsAfterAnException() {
        for (ReceivedResponses received : pair("pairs", "raise ValueError('no ä')")) {
            BackendException error = received.error();
            assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(error.getMessage())
                    .startsWith(failed("pairs_0") + "ValueError: no ä\n\nAt:\n  <string>(2): run\n  ")
                    .endsWith("/pairs/1/model.py(30): execute\n");
        }
        assertThat(server.log().lines("ValueError: no ä"))
                .anySatisfy(line -> assertThat(line).contains("Traceback (most recent call last)", "r0", "r1"));
    }

    @Test
    void namesTheExceptionsOfTheBackendAndOfBases() {
        for (String raised :
                List.of("pb.TritonModelException('m')", "KeyError('m')", "KeyboardInterrupt()", "SystemError()")) {
            String name = raised.substring(raised.indexOf('.') + 1, raised.indexOf('('));
            String message = name.equals("KeyError") ? "'m'" : raised.contains("'m'") ? "m" : "<EMPTY MESSAGE>";
            assertThat(server.send(server.code("scripted", "raise " + raised)).error())
                    .hasMessageStartingWith(failed("scripted_0") + name + ": " + message + "\n\nAt:\n");
        }
        assertThat(server.runText("return [out('alive')]")).isEqualTo("alive");
    }

    @Test
    void keepsTheEndOfRequestsThatHaveTheirFinalResponse() {
        for (String model : List.of("pairs", "stream_pairs")) {
            List<ReceivedResponses> pair = pair(model, """
                    for r in requests:
                        if r.request_id() == "r0":
                            r.get_response_sender().send(out("sent"), 1)
                    raise RuntimeError("late")
                    """);
            assertThat(text(pair.get(0).one())).isEqualTo("sent");
            assertThat(pair.get(1).error()).hasMessageStartingWith(failed(model + "_0") + "RuntimeError: late\n");
        }
    }

    @Test
    void failsAStreamThatHasNoFinalResponse() {
        List<ReceivedResponses> pair = pair("stream_pairs", """
                self.kept = [r.get_response_sender() for r in requests]
                for s in self.kept:
                    s.send(out("first"))
                raise RuntimeError("late")
                """);
        for (ReceivedResponses received : pair) {
            assertThat(received.error()).hasMessageStartingWith(failed("stream_pairs_0") + "RuntimeError: late\n");
            assertThat(text(received.await(1).getFirst())).isEqualTo("first");
        }
        pair = pair("stream_pairs", """
                said = []
                for s in self.kept:
                    try:
                        s.send(out("more"))
                    except pb.TritonModelException as e:
                        said.append(str(e))
                for r in requests:
                    r.get_response_sender().send(out("; ".join(said)), 1)
                """);
        assertThat(text(pair.getFirst().one()))
                .isEqualTo(
                        "Unable to send response. Response sender has been closed.; Unable to send response. Response"
                                + " sender has been closed.");
    }

    @ParameterizedTest
    @EnumSource(
            value = ErrorCode.class,
            names = {
                "UNKNOWN",
                "INTERNAL",
                "NOT_FOUND",
                "INVALID_ARGUMENT",
                "UNAVAILABLE",
                "UNSUPPORTED",
                "ALREADY_EXISTS",
                "CANCELLED"
            })
    void failsOneRequestOfABatch(ErrorCode code) {
        String name = code == ErrorCode.INVALID_ARGUMENT ? "INVALID_ARG" : code.name();
        List<ReceivedResponses> pair = pair("pairs", """
                return [pb.InferenceResponse([pb.Tensor("OUT", np.zeros(1))], pb.TritonError("only ä", pb.TritonError.%s))
                        if r.request_id() == "r1" else out("fine") for r in requests]
                """.formatted(name));
        assertThat(text(pair.get(0).one())).isEqualTo("fine");
        assertError(pair.get(1), code, "only ä");
        pair = pair("stream_pairs", """
                for r in requests:
                    error = pb.TritonError("only ä", pb.TritonError.%s) if r.request_id() == "r1" else None
                    s = r.get_response_sender()
                    s.send(pb.InferenceResponse([pb.Tensor("OUT", np.array(["x"], dtype=object))], error), 1)
                """.formatted(name));
        assertThat(text(pair.get(0).one())).isEqualTo("x");
        assertError(pair.get(1), code, "only ä");
    }

    @Test
    void defaultsToAnInternalError() {
        assertError(
                server.send(server.code("scripted", "return [pb.InferenceResponse(error=pb.TritonError('x'))]")),
                ErrorCode.INTERNAL,
                "x");
    }

    @Test
    void refusesWhatADecoupledModelReturns() {
        assertError(
                server.send(server.code("streams", "return [out('a')]")),
                ErrorCode.INTERNAL,
                failed("streams_0")
                        + "Python model 'streams_0' is using the decoupled mode and the execute function must"
                        + " return None.");
        assertError(
                server.send(server.code("streams", "return []")),
                ErrorCode.INTERNAL,
                failed("streams_0")
                        + "Python model 'streams_0' is using the decoupled mode and the execute function must"
                        + " return None.");
    }

    @Test
    void refusesRequestsOfAModelWithoutExecute() {
        for (int i = 0; i < 2; i++) {
            assertThat(server.send(server.code("nothing", "")).error().getMessage())
                    .startsWith(failed("nothing_0") + "Python model ")
                    .endsWith("/nothing/1/model.py does not implement `execute` method.");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"return None", "pass", "self.r = requests", "return [None]"})
    void failsARequestWithoutAnyAnswer(String code) {
        if (code.equals("return [None]")) {
            code = "requests.clear(); return [None]";
        }
        BackendException error = server.send(server.code("scripted", code)).error();
        assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(error)
                .hasMessage("Python model 'scripted_0' returned no response and did not use the response sender.");
    }

    @ParameterizedTest
    @ValueSource(strings = {"scripted", "streams", "coroutines", "coroutine_streams"})
    void failsARequestWhoseSenderIsLost(String model) {
        String def = model.startsWith("coroutine") ? "async def" : "def";
        String returned = model.equals("streams") || model.equals("coroutine_streams") ? "None" : "[None]";
        for (String lose : List.of(
                "s = requests[0].get_response_sender(); del s",
                "self.kept = [requests[0].get_response_sender()]; self.kept.clear()",
                "s = requests[0].get_response_sender(); t = threading.Timer(0.05, lambda s: None, [s]); t.start()")) {
            BackendException error = server.send(
                            server.code(model, def + " run(self, requests):\n    " + lose + "\n    return " + returned))
                    .error();
            assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(error)
                    .as(lose)
                    .hasMessage(
                            "Python model '" + model + "_0' released the response sender without the final response.");
        }
        String alive =
                model.endsWith("streams") ? "requests[0].get_response_sender().send(out('x'), 1)" : "return [out('x')]";
        assertThat(text(server.send(server.code(model, def + " run(self, requests):\n    " + alive))
                        .one()))
                .isEqualTo("x");
    }

    @Test
    void answersByACoroutineOneAfterTheOther() {
        List<ReceivedResponses> sent = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            sent.add(server.send(server.code("coroutines", """
                    async def run(self, requests):
                        self.running = getattr(self, "running", 0) + 1
                        await asyncio.sleep(0.01)
                        running, self.running = self.running, self.running - 1
                        return [out(str(running))]
                    """)));
        }
        sent.forEach(received -> assertThat(text(received.one())).isEqualTo("1"));
    }

    @Test
    void failsTheRequestsOfACoroutineThatThrows() {
        for (ReceivedResponses received : pair("coroutine_pairs", """
                async def run(self, requests):
                    await asyncio.sleep(0)
                    raise ValueError("in a coroutine")
                """)) {
            assertThat(received.error())
                    .hasMessageStartingWith(
                            failed("coroutine_pairs_0") + "ValueError: in a coroutine\n\nAt:\n  <string>(3): run\n");
        }
        assertError(
                server.send(server.code("coroutines", "async def run(self, requests): return 5")),
                ErrorCode.INTERNAL,
                failed("coroutines_0") + "Expected a list in the execute return, found type '<class 'int'>'.");
        ReceivedResponses stream = server.send(server.code("coroutine_streams", """
                async def run(self, requests):
                    s = requests[0].get_response_sender()
                    s.send(out("first"))
                    await asyncio.sleep(0.02)
                    raise ValueError("in a stream")
                """));
        assertThat(stream.error())
                .hasMessageStartingWith(failed("coroutine_streams_0") + "ValueError: in a stream\n\nAt:\n");
        assertThat(text(stream.await(1).getFirst())).isEqualTo("first");
        assertThat(server.log().lines("ValueError: in a stream"))
                .anySatisfy(line -> assertThat(line).contains("Traceback"));
    }

    @Test
    void runsCoroutinesOfADecoupledModelAtOnce() {
        String code = """
                async def run(self, requests):
                    s = requests[0].get_response_sender()
                    if not hasattr(self, "all"):
                        self.all, self.count = asyncio.Event(), 0
                    self.count += 1
                    if self.count == 20:
                        self.all.set()
                    await asyncio.wait_for(self.all.wait(), 30)
                    for i in range(3):
                        s.send(out(str(i)))
                        await asyncio.sleep(0)
                    s.send(flags=1)
                """;
        List<ReceivedResponses> sent = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            sent.add(server.send(server.code("coroutine_streams", code)));
        }
        for (ReceivedResponses received : sent) {
            assertThat(received.all()).extracting(ReturnsIT::text).containsExactly("0", "1", "2");
        }
    }

    @Test
    void passesOnOutputsThatDoNotFitAndLogsEachOnce() {
        for (int i = 0; i < 3; i++) {
            ModelResponse response = server.send(server.code("wrong", """
                    return [pb.InferenceResponse([
                        pb.Tensor("OUT", np.arange(6, dtype=np.float64).reshape(2, 3)),
                        pb.Tensor("OTHER", np.zeros(1))])]
                    """)).one();
            assertThat(response.outputs()).containsExactly("OUT");
            assertThat(response.requireOutput("OUT").doubles()).containsExactly(0, 1, 2, 3, 4, 5);
            assertThat(response.requireOutput("OUT").shape()).isEqualTo(Shape.of(2, 3));
        }
        PythonServer.await("warnings", () -> server.log().lines("'OTHER'").size() == 1);
        assertThat(server.log().lines("model 'wrong'"))
                .satisfiesExactlyInAnyOrder(
                        line -> assertThat(line).contains("another type", "'OUT'", "configured FP32, given FP64"),
                        line -> assertThat(line).contains("does not fit", "'OUT'", "configured [-1], given [2,3]"),
                        line -> assertThat(line).contains("'MORE'"));
    }
}
