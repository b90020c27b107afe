package dev.nereid.backend.python.call;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.execute.PythonServer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.ReceivedResponses;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of calls of other models, of a model that runs code of the test. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class CallsIT {
    private static final String DECOUPLED = "model_transaction_policy { decoupled: true }";
    private static final String PREFIX = "Model %s - Error when running inference: ";

    /** The Python program with which most tests call models. */
    private static final String CALLER = PythonServer.SCRIPTED + """


            def call(model, *arrays, names=None, outputs=(), **more):
                names = names or ["IN", "IN2", "IN3"]
                return pb.InferenceRequest(model_name=model, requested_output_names=list(outputs),
                    inputs=[pb.Tensor(n, a) for n, a in zip(names, arrays)], **more)


            def array(response, name="OUT"):
                if response.has_error():
                    raise pb.TritonModelException(response.error().message())
                return pb.get_output_tensor_by_name(response, name).as_numpy()
            """;

    private static final String TWICE = """
            import time
            import numpy as np
            import triton_python_backend_utils as pb


            class TritonPythonModel:
                def execute(self, requests):
                    answers = []
                    for r in requests:
                        x = r.inputs()[0].as_numpy()
                        if x.size == 1 and x[0] < 0:
                            answers.append(pb.InferenceResponse(error=pb.TritonError("below ä", pb.TritonError.NOT_FOUND)))
                        else:
                            answers.append(pb.InferenceResponse([pb.Tensor("OUT", 2 * x)], parameters={"n": x.size}))
                    return answers
            """;

    private static final String COUNT = """
            import time
            import numpy as np
            import triton_python_backend_utils as pb


            class TritonPythonModel:
                def initialize(self, args):
                    self.cancelled = 0

                def execute(self, requests):
                    for r in requests:
                        n = int(r.inputs()[0].as_numpy()[0])
                        s = r.get_response_sender()
                        if n < 0:
                            begin = time.time()
                            i = 0
                            while not s.is_cancelled() and time.time() < begin + 50:
                                s.send(pb.InferenceResponse([pb.Tensor("OUT", np.array([i], np.float32))]))
                                i += 1
                                time.sleep(0.001)
                            self.cancelled += s.is_cancelled()
                        elif n == 12345:
                            s.send(pb.InferenceResponse([pb.Tensor("OUT", np.array([self.cancelled], np.float32))]))
                        elif n == 54321:
                            s.send(pb.InferenceResponse([pb.Tensor("OUT", np.zeros(1, np.float32))]))
                            s.send(pb.InferenceResponse(error=pb.TritonError("oops", pb.TritonError.UNAVAILABLE)))
                        else:
                            for i in range(n):
                                s.send(pb.InferenceResponse([pb.Tensor("OUT", np.array([i], np.float32))]))
                        s.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            """;

    /** Calls itself as often as the input says, and sums the way. */
    private static final String RECURSIVE = """
            import numpy as np
            import triton_python_backend_utils as pb


            class TritonPythonModel:
                def execute(self, requests):
                    answers = []
                    for r in requests:
                        n = r.inputs()[0].as_numpy()
                        total = n.copy()
                        if n[0] > 0:
                            request = pb.InferenceRequest(model_name="recursive", requested_output_names=["OUT"],
                                inputs=[pb.Tensor("IN", n - 1)])
                            response = request.exec()
                            if response.has_error():
                                answers.append(pb.InferenceResponse(error=response.error()))
                                continue
                            total += pb.get_output_tensor_by_name(response, "OUT").as_numpy()
                        answers.append(pb.InferenceResponse([pb.Tensor("OUT", total)]))
                    return answers
            """;

    private static final String IO = """
            input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ] output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
            """;

    /** Also a function of the coroutine kind. */
    private static final String COROUTINES = CALLER.replace("    def execute(", "    async def execute(")
            .replace("return scope[", "return await scope[");

    private PythonServer server;

    @BeforeAll
    void start() {
        server = PythonServer.builder()
                .options(
                        options -> options.explicit("scripted", "coroutines", "twice", "count", "recursive", "streams"))
                .model("scripted", PythonServer.SCRIPTED_CONFIG, CALLER)
                .model("streams", PythonServer.SCRIPTED_CONFIG + DECOUPLED, CALLER)
                .model("coroutines", PythonServer.SCRIPTED_CONFIG, COROUTINES)
                .model("twice", IO, TWICE)
                .model("count", IO + DECOUPLED, COUNT)
                .model("recursive", IO + "instance_group { count: 4 kind: KIND_CPU }", RECURSIVE)
                .model("later", IO, TWICE)
                .start();
    }

    @AfterAll
    void close() {
        if (server != null) {
            server.close();
        }
    }

    private static String text(ModelResponse response) {
        return response.requireOutput("OUT").strings().getFirst();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 100, 4096, 4097, 100_000, 10_000_000})
    void passesTensorsBothWays(int n) {
        for (int i = 0; i < 3; i++) {
            assertThat(server.runText("""
                    x = np.arange(%d, dtype=np.float32)
                    r = call("twice", x).exec()
                    assert (array(r) == 2 * x).all()
                    assert json.loads(r.parameters()) == {"n": x.size}, r.parameters()
                    again = pb.InferenceRequest(model_name="twice", requested_output_names=["OUT"],
                        inputs=[pb.Tensor.from_dlpack("IN", r.output_tensors()[0].to_dlpack())]).exec()
                    assert (array(again) == 4 * x).all()
                    return [out("ok")]
                    """.formatted(n))).isEqualTo("ok");
        }
        float[] values = new float[n];
        java.util.Arrays.fill(values, 3);
        ModelResponse response = server.send(server.code("scripted", """
                        x = tensor(requests[0])
                        r = pb.InferenceRequest(model_name="twice", requested_output_names=["OUT"],
                            inputs=[pb.Tensor.from_dlpack("IN", x.to_dlpack())]).exec()
                        y = pb.get_output_tensor_by_name(r, "OUT")
                        return [pb.InferenceResponse([y, pb.Tensor("MORE", y.as_numpy() + x.as_numpy())])]
                        """).input("X", Shape.of(n), values))
                .one();
        assertThat(response.requireOutput("OUT").floats()).hasSize(n).containsOnly(6);
        assertThat(response.requireOutput("MORE").floats()).hasSize(n).containsOnly(9);
    }

    @Test
    void returnsErrorsAsResponses() {
        String code = """
                r = %s.exec()
                assert r.has_error() and r.output_tensors() == []
                return [out(f"{r.error().code()}|{r.error().message()}")]
                """;
        assertThat(server.runText(code.formatted("call('twice', np.array([-1], np.float32))")))
                .endsWith("NOT_FOUND|below ä");
        assertThat(server.runText(code.formatted("call('none', np.zeros(1, np.float32))")))
                .endsWith("INTERNAL|" + PREFIX.formatted("none")
                        + "Failed for execute the inference request. Model 'none' is not ready.");
        assertThat(server.runText(code.formatted("call('twice', np.zeros(1, np.float32), model_version=7)")))
                .contains("INTERNAL|" + PREFIX.formatted("twice"));
        assertThat(server.runText(code.formatted("call('twice')")))
                .startsWith("__ErrorCode.INTERNAL|" + PREFIX.formatted("twice")
                        + "[request id: <id_unknown>] expected 1 inputs" + " but got 0 inputs for model 'twice'");
        assertThat(server.runText(code.formatted("call('twice', np.zeros(1, np.int8))")))
                .contains("INTERNAL|" + PREFIX.formatted("twice"), "data-type");
        assertThat(server.runText(code.formatted("call('twice', np.zeros(1, np.float32), outputs=['NO'])")))
                .contains("INTERNAL|" + PREFIX.formatted("twice"), "NO");
        assertThat(server.runText(code.formatted("call('count', np.ones(1, np.float32))")))
                .contains(
                        "Model count is using the decoupled. The current BLS request call doesn't support models using the"
                                + " decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec'"
                                + " calls for decoupled models.'");
        assertThat(server.runText(code.formatted("call('later', np.ones(1, np.float32))")))
                .contains("INTERNAL|" + PREFIX.formatted("later"));
    }

    @Test
    void refusesWrongRequests() {
        String code = """
                try:
                    %s
                except Exception as e:
                    return [out(f"{type(e).__name__}: {e}")]
                return [out("no error")]
                """;
        assertThat(server.runText(code.formatted(
                        "pb.InferenceRequest(model_name='m', inputs=[None], requested_output_names=[])")))
                .isEqualTo(
                        "TritonModelException: Input tensor for request with id '' and model name 'm' should not be empty.");
        assertThat(server.runText(
                        code.formatted("pb.InferenceRequest(model_name='m', inputs=[], requested_output_names=[''])")))
                .startsWith("TritonModelException: Requested output name for request with id ");
        assertThat(server.runText(code.formatted("call('m', correlation_id=1.5)")))
                .startsWith("TritonModelException: Correlation ID must be integer or string");
        assertThat(server.runText(code.formatted("call('m', parameters={1: 2})")))
                .startsWith("TritonModelException: Expect parameters keys to have type str, found type <class 'int'>");
    }

    @Test
    void gathersCalls() {
        assertThat(text(server.send(server.code("coroutines", """
                        async def run(self, requests):
                            arrays = [np.full(n, n, np.float32) for n in (1, 5000, 3, 100_000) * 25]
                            responses = await asyncio.gather(*[call("twice", a).async_exec() for a in arrays])
                            for a, r in zip(arrays, responses):
                                assert (array(r) == 2 * a).all() and r.output_tensors()[0].shape() == [a.size]
                            r = await call("twice", np.array([-1], np.float32)).async_exec()
                            it = await call("count", np.array([3], np.float32)).async_exec(decoupled=True)
                            n = [len(x.output_tensors()) for x in it]
                            return [out(f"{r.error().message()} {n}")]
                        """)).one())).isEqualTo("below ä [1, 1, 1, 0]");
    }

    @Test
    void iteratesOverStreams() {
        assertThat(server.runText("""
                it = call("count", np.array([4], np.float32)).exec(decoupled=True)
                first = next(it)
                got = [array(first)[0]]
                for r in it:
                    got.append(array(r)[0] if r.output_tensors() else "end")
                again = [array(r)[0] if r.output_tensors() else "end" for r in it]
                empty = [len(r.output_tensors()) for r in call("count", np.zeros(1, np.float32)).exec(decoupled=True)]
                one = [array(r)[0] for r in call("twice", np.ones(1, np.float32)).exec(decoupled=True)]
                bad = [r.error().message() for r in call("twice", np.array([-1], np.float32)).exec(decoupled=True)]
                none = [r.error().message() for r in call("none", np.ones(1, np.float32)).exec(decoupled=True)]
                mixed = [r.error().message() if r.has_error() else len(r.output_tensors())
                         for r in call("count", np.array([54321], np.float32)).exec(decoupled=True)]
                return [out(f"{got} {again} {empty} {one} {bad} {none} {mixed}".replace('"', "'"))]
                """))
                .isEqualTo("[0.0, 1.0, 2.0, 3.0, 'end'] [0.0, 1.0, 2.0, 3.0, 'end'] [0] [2.0] ['below ä'] ['"
                        + PREFIX.formatted("none")
                        + "Failed for execute the inference request. Model 'none' is not ready.'] [1, 'oops', 0]");
    }

    @Test
    void receivesManyResponses() {
        assertThat(server.runText("""
                n = 0
                for r in call("count", np.array([5000], np.float32)).exec(decoupled=True):
                    if r.output_tensors():
                        assert array(r)[0] == n
                        n += 1
                return [out(str(n))]
                """)).isEqualTo("5000");
    }

    @Test
    void cancelsAndDropsStreams() {
        String cancelled = """
                return [out(str([array(r)[0] for r in call("count", np.array([12345], np.float32)).exec(decoupled=True)
                    if r.output_tensors()][0]))]
                """;
        float before = Float.parseFloat(server.runText(cancelled));
        assertThat(server.runText("""
                it = call("count", np.array([-1], np.float32)).exec(decoupled=True)
                for i in range(5):
                    array(next(it))
                it.cancel()
                last = None
                for last in it:
                    pass
                return [out(last.error().message() if last.has_error() else "final")]
                """)).isEqualTo("request was cancelled");
        assertThat(Float.parseFloat(server.runText(cancelled))).isEqualTo(before + 1);
        assertThat(server.runText("""
                it = call("count", np.array([100], np.float32)).exec(decoupled=True)
                array(next(it))
                del it
                it = call("count", np.array([100], np.float32)).exec(decoupled=True)
                del it
                return [out("dropped")]
                """)).isEqualTo("dropped");
        assertThat(Float.parseFloat(server.runText(cancelled))).isEqualTo(before + 1);
    }

    @Test
    void callsFromThreadsDuringAndAfterExecute() {
        assertThat(server.runText("""
                from concurrent.futures import ThreadPoolExecutor
                def one(i):
                    a = np.full(1 + i * 100, i, np.float32)
                    assert (array(call("twice", a).exec()) == 2 * i).all()
                    return i
                with ThreadPoolExecutor(16) as pool:
                    total = sum(pool.map(one, range(200)))
                self.result = []
                def later():
                    time.sleep(0.05)
                    self.result.append(sum(one(i) for i in range(20)))
                threading.Thread(target=later).start()
                return [out(str(total))]
                """)).isEqualTo("19900");
        PythonServer.await(
                "call of a thread",
                () -> server.runText("return [out(str(self.result))]").equals("[190]"));
    }

    @Test
    void callsItselfWhileAnInstanceIsFree() {
        ModelResponse response = server.send(server.request("recursive").input("IN", Shape.of(1), 3f))
                .one();
        assertThat(response.requireOutput("OUT").floats()).containsExactly(6);
        List<ReceivedResponses> sent = IntStream.range(0, 40)
                .mapToObj(i -> server.send(server.request("recursive").input("IN", Shape.of(1), 0f)))
                .toList();
        sent.forEach(ReceivedResponses::one);
    }

    @Test
    void refusesARecursionThatHasTooFewInstances() {
        BackendException error = server.send(server.request("recursive").input("IN", Shape.of(1), 6f))
                .error();
        assertThat(error)
                .hasMessage(PREFIX.formatted("recursive")
                        + "request to model 'recursive' would wait for itself: recursive ->"
                        + " recursive -> recursive -> recursive -> recursive (expected: an instance that does not wait in"
                        + " this chain)");
        assertThat(server.send(server.request("recursive").input("IN", Shape.of(1), 2f))
                        .one()
                        .requireOutput("OUT")
                        .floats())
                .containsExactly(3);
    }

    @Test
    void cancelsTheCallsOfACancelledBatch(@TempDir Path directory) {
        Path responded = directory.resolve("responded");
        String cancelled = """
                return [out(str([array(r)[0] for r in call("count", np.array([12345], np.float32)).exec(decoupled=True)
                    if r.output_tensors()][0]))]
                """;
        float before = Float.parseFloat(server.runText(cancelled));
        ModelRequest request = server.code("scripted", """
                for r in call("count", np.array([-1], np.float32)).exec(decoupled=True):
                    if r.output_tensors():
                        open("%s", "w").close()
                return [out("end")]
                """.formatted(responded));
        ReceivedResponses received = server.send(request);
        PythonServer.await("first response of the call", () -> Files.exists(responded));
        request.cancel();
        assertThat(received.error().code()).isEqualTo(ErrorCode.CANCELLED);
        assertThat(Float.parseFloat(server.runText(cancelled))).isEqualTo(before + 1);
    }

    @Test
    void passesOnWhatARequestHas() {
        assertThat(server.runText("""
                program = "async def" + " run(self, requests): r = requests[0]; return [out(json.dumps([" \\
                    "r.request_id(), r.correlation_id(), r.flags(), r.timeout(), sorted(json.loads(r.parameters()).items())," \\
                    "sorted(r.requested_output_names())]))]"
                r = pb.InferenceRequest(model_name="coroutines", request_id="i", timeout=99_000_000,
                    requested_output_names=["OUT"],
                    inputs=[pb.Tensor("CODE", np.array([program], object))],
                    parameters={"a": 1, "b": True, "c": "ä"}).exec()
                return [out(array(r)[0].decode())]
                """))
                .isEqualTo("[\"i\", 0, 0, 99000000, [[\"a\", 1], [\"b\", true], [\"c\", \"\\u00e4\"]], [\"OUT\"]]");
    }

    @Test
    void cancelsACallThatWaits() {
        assertThat(server.runText("""
                request = pb.InferenceRequest(model_name="scripted", timeout=1000, requested_output_names=["OUT"],
                    inputs=[pb.Tensor("CODE", np.array([b"def run(self, requests): return [out('x')]"], object))])
                r = request.exec(decoupled=True)
                r.cancel()
                return [out(next(r).error().message())]
                """)).isNotEmpty();
    }

    @Test
    void callsFromForkedProcesses() {
        assertThat(server.runText("""
                import multiprocessing
                def work(i):
                    return float(array(call("twice", np.full(1 + 1000 * i, i, np.float32)).exec()).sum())
                module = sys.modules["forked"] = type(sys)("forked")
                module.work, work.__module__, work.__qualname__ = work, "forked", "work"
                for i in range(3):
                    with multiprocessing.get_context("fork").Pool(4) as pool:
                        got = pool.map(work, range(10))
                    assert got == [2.0 * i * (1 + 1000 * i) for i in range(10)], got
                return [out("ok")]
                """)).isEqualTo("ok");
    }

    @Test
    void loadsAndUnloadsModels() {
        assertThat(server.runText("""
                said = [pb.is_model_ready("later"), pb.is_model_ready("twice"), pb.is_model_ready("twice", "1"),
                        pb.is_model_ready("twice", "2")]
                pb.load_model("later")
                said += [pb.is_model_ready("later"), float(array(call("later", np.ones(1, np.float32)).exec())[0])]
                pb.load_model(model_name="later", config=json.dumps({"backend": "python", "max_batch_size": 4,
                    "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}],
                    "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}]}))
                said += [array(call("later", np.ones((2, 3), np.float32)).exec()).tolist()]
                program = open(os.path.join(self.args["model_repository"], "..", "later", "1", "model.py")).read()
                pb.load_model("later", config=json.dumps({"backend": "python",
                    "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}],
                    "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}]}),
                    files={"file:1/model.py": program.replace("2 * x", "3 * x").encode()})
                said += [float(array(call("later", np.ones(1, np.float32)).exec())[0])]
                pb.unload_model("later")
                begin = time.time()
                while pb.is_model_ready("later") and time.time() < begin + 30:
                    time.sleep(0.01)
                said += [pb.is_model_ready("later")]
                return [out(json.dumps(said))]
                """))
                .isEqualTo("[false, true, true, false, true, 2.0, [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]], 3.0, false]");
    }

    @Test
    void loadsModelsInInitialize() {
        String model = """
                import time
                import numpy as np
                import triton_python_backend_utils as pb


                class TritonPythonModel:
                    def initialize(self, args):
                        before = pb.is_model_ready("later")
                        pb.load_model("later")
                        after = pb.is_model_ready("later")
                        pb.unload_model("later")
                        self.said = f"{before} {after}"

                    def execute(self, requests):
                        return [pb.InferenceResponse([pb.Tensor("OUT", np.array([self.said], object))]) for r in requests]
                """;
        try (PythonServer own = PythonServer.builder()
                .options(options -> options.explicit("loader"))
                .model("loader", IO, model)
                .model("later", IO, TWICE)
                .start()) {
            assertThat(text(own.send(own.request("loader").input("IN", Shape.of(1), 1f))
                            .one()))
                    .isEqualTo("False True");
        }
    }

    @Test
    void saysWhyModelsCannotBeLoaded() {
        String code = """
                try:
                    %s
                except pb.TritonModelException as e:
                    return [out(str(e))]
                return [out("no error")]
                """;
        assertThat(server.runText(code.formatted("pb.load_model('none')"))).startsWith("Failed to load model: ");
        assertThat(server.runText(code.formatted("pb.load_model('later', config='{')")))
                .startsWith("Failed to load model: ");
        assertThat(server.runText(code.formatted("pb.load_model('later', files=[1])")))
                .contains("failed to load model 'later', files should be a dictionary of file paths and file contents");
        assertThat(server.runText(code.formatted("pb.is_model_ready('twice', 'x')")))
                .startsWith(
                        "Failed to check model readiness: Failed to process the request for model 'scripted_0', message: failed to get model version from specified version string 'x'");
        assertThat(server.runText(code.formatted("pb.is_model_ready('none')"))).isEqualTo("no error");
        assertThat(server.runText(code.formatted("pb.unload_model('none')")))
                .satisfies(text -> assertThat(text).isNotBlank());
    }

    @Test
    void refusesCallsInInitializeAndFinalize() {
        String model = """
                import numpy as np
                import triton_python_backend_utils as pb


                class TritonPythonModel:
                    def call(self):
                        request = pb.InferenceRequest(model_name="twice", requested_output_names=["OUT"],
                            inputs=[pb.Tensor("IN", np.ones(1, np.float32))])
                        try:
                            request.exec()
                            return "no error"
                        except pb.TritonModelException as e:
                            return str(e)

                    def initialize(self, args):
                        pb.Logger.log_info("initialize: " + self.call())

                    def execute(self, requests):
                        pass

                    def finalize(self):
                        pb.Logger.log_info("finalize: " + self.call())
                """;
        try (PythonServer own = PythonServer.builder()
                .model("early", IO, model)
                .model("twice", IO, TWICE)
                .start()) {
            String text = "BLS is only supported during the 'execute' function.";
            assertThat(own.log().lines("initialize: " + text)).hasSize(1);
            own.local().server().close();
            assertThat(own.log().lines("finalize: " + text)).hasSize(1);
        }
    }
}
