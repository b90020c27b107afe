package dev.nereid.backend.python.execute;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.ReceivedResponses;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests models of the kinds that people publish: each does its work in functions of a file beside {@code model.py}, and a plain
 * Python that calls the same functions gives the same bytes.
 */
final class PlainPythonIT {
    private static final String TEXTS = """
            import json
            import os
            import re
            import unicodedata

            import numpy as np

            WORDS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.json")))


            def tokens(text):
                text = unicodedata.normalize("NFKC", text).lower()
                return [WORDS.get(w, sum(w.encode()) % 1000 + 100) for w in re.findall(r"\\w+|[^\\w\\s]", text)]


            def tokenize(texts, length=32):
                ids = np.zeros((len(texts), length), dtype=np.int64)
                mask = np.zeros((len(texts), length), dtype=np.bool_)
                for i, text in enumerate(texts):
                    found = tokens(text)[:length]
                    ids[i, : len(found)] = found
                    mask[i, : len(found)] = True
                return ids, mask
            """;

    private static final String PICTURES = """
            import numpy as np

            MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
            STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


            def resize(picture, height, width):
                h, w, _ = picture.shape
                y, x = np.linspace(0, h - 1, height), np.linspace(0, w - 1, width)
                y0, x0 = np.floor(y).astype(int), np.floor(x).astype(int)
                y1, x1 = np.minimum(y0 + 1, h - 1), np.minimum(x0 + 1, w - 1)
                fy, fx = (y - y0)[:, None, None], (x - x0)[None, :, None]
                p = picture.astype(np.float64)
                top = p[y0][:, x0] * (1 - fx) + p[y0][:, x1] * fx
                bottom = p[y1][:, x0] * (1 - fx) + p[y1][:, x1] * fx
                return top * (1 - fy) + bottom * fy


            def prepare(picture):
                scaled = (resize(picture, 224, 224) / 255).astype(np.float32)
                return ((scaled - MEAN) / STD).transpose(2, 0, 1)


            def softmax(x):
                e = np.exp(x - x.max(-1, keepdims=True))
                return e / e.sum(-1, keepdims=True)


            def features(prepared):
                return softmax(prepared.reshape(prepared.shape[0], 8, 28, 8, 28).mean((2, 4)).reshape(1, -1))
            """;

    private static final String SPEECH = """
            import numpy as np


            class State:
                def __init__(self):
                    self.rest, self.level = np.zeros(0, np.float32), 0.0

                def feed(self, samples, last):
                    data = np.concatenate([self.rest, samples])
                    count = len(data) // 160 if not last else -(-len(data) // 160)
                    data = np.pad(data, (0, max(0, count * 160 - len(data))))
                    frames, self.rest = data[: count * 160].reshape(count, 160), data[count * 160 :]
                    spectrum = np.abs(np.fft.rfft(frames * np.hanning(160), axis=1))
                    result = np.log1p(spectrum[:, :40])
                    self.level = 0.9 * self.level + float(result.sum())
                    return result.astype(np.float32), self.level
            """;

    private static String config(String inputs, String outputs) {
        return "input [ " + inputs + " ] output [ " + outputs + " ] ";
    }

    private static String tensor(String name, String type, String dims) {
        return "{ name: \"" + name + "\" data_type: TYPE_" + type + " dims: [ " + dims + " ] }";
    }

    /** Runs a program in plain Python and returns its standard output. */
    private static String python(Path directory, String program) throws IOException, InterruptedException {
        Path file = directory.resolve("plain.py");
        Files.writeString(file, program);
        Process process = new ProcessBuilder(Pythons.executable(), file.toString())
                .directory(directory.toFile())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String out = new String(process.getInputStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
        return out.strip();
    }

    private static String hex(ModelResponse response, String output) {
        byte[] bytes = response.requireOutput(output).data().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
        return HexFormat.of().formatHex(bytes);
    }

    private static float[] samples(int count) {
        float[] samples = new float[count];
        for (int i = 0; i < count; i++) {
            samples[i] = (float) Math.sin(i * 0.05) + (i % 13) * 0.01f;
        }
        return samples;
    }

    @Test
    void tokenizesAsPlainPython(@TempDir Path directory) throws Exception {
        String model = """
                import json
                import numpy as np
                import triton_python_backend_utils as pb_utils
                from . import texts


                class TritonPythonModel:
                    def initialize(self, args):
                        config = json.loads(args["model_config"])
                        self.type = pb_utils.triton_string_to_numpy(
                            pb_utils.get_output_config_by_name(config, "IDS")["data_type"])
                        self.length = int(config["parameters"]["length"]["string_value"])

                    def execute(self, requests):
                        responses = []
                        for request in requests:
                            given = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()
                            ids, mask = texts.tokenize([t.decode("utf-8") for t in given.reshape(-1)], self.length)
                            responses.append(pb_utils.InferenceResponse([
                                pb_utils.Tensor("IDS", ids.astype(self.type)), pb_utils.Tensor("MASK", mask)]))
                        return responses
                """;
        String words = "{\"hello\": 1, \"world\": 2, \"ä\": 3, \"!\": 4}";
        String[] given = {"Hello, World!", "Ä ö ﬁn 日本語 e\u0301", "", "x ".repeat(100)};
        try (PythonServer server = PythonServer.builder()
                .model(
                        "tokenizer",
                        config(
                                        tensor("TEXT", "STRING", "1"),
                                        tensor("IDS", "INT32", "-1") + "," + tensor("MASK", "BOOL", "-1"))
                                + "max_batch_size: 8 parameters { key: \"length\" value { string_value: \"24\" } }",
                        model)
                .file("tokenizer", "1/texts.py", TEXTS)
                .file("tokenizer", "1/words.json", words)
                .start()) {
            ModelResponse response = server.send(server.request("tokenizer").input("TEXT", Shape.of(4, 1), given))
                    .one();
            Files.writeString(directory.resolve("texts.py"), TEXTS);
            Files.writeString(directory.resolve("words.json"), words);
            String plain = python(directory, """
                    import numpy as np, texts
                    ids, mask = texts.tokenize(["Hello, World!", "Ä ö ﬁn 日本語 e\\u0301", "", "x " * 100], 24)
                    print(ids.astype(np.int32).tobytes().hex() + " " + mask.tobytes().hex())
                    """);
            assertThat(hex(response, "IDS") + " " + hex(response, "MASK")).isEqualTo(plain);
        }
    }

    /** Preparation and a classifier in models of their own, called one after the other, and both at once by coroutines. */
    @Test
    void preparesPicturesAsPlainPython(@TempDir Path directory) throws Exception {
        String step = """
                import numpy as np
                import triton_python_backend_utils as pb_utils
                import pictures


                class TritonPythonModel:
                    def execute(self, requests):
                        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pictures.%s(
                            pb_utils.get_input_tensor_by_name(r, "IN").as_numpy()))]) for r in requests]
                """;
        String calls = """
                import asyncio
                import numpy as np
                import triton_python_backend_utils as pb_utils


                def call(model, tensor):
                    return pb_utils.InferenceRequest(model_name=model, requested_output_names=["OUT"],
                        inputs=[pb_utils.Tensor.from_dlpack("IN", tensor.to_dlpack())])


                def out(response):
                    if response.has_error():
                        raise pb_utils.TritonModelException(response.error().message())
                    return pb_utils.get_output_tensor_by_name(response, "OUT")


                class TritonPythonModel:
                    %s def execute(self, requests):
                        responses = []
                        for request in requests:
                            prepared = out(%s)
                            answers = %s
                            responses.append(pb_utils.InferenceResponse([
                                pb_utils.Tensor("OUT", np.concatenate([out(a).as_numpy() for a in answers]))]))
                        return responses
                """;
        String picture = config(tensor("IN", "UINT8", "-1, -1, 3"), tensor("OUT", "FP32", "-1, -1"));
        try (PythonServer server = PythonServer.builder()
                .model(
                        "prepare",
                        config(tensor("IN", "UINT8", "-1, -1, 3"), tensor("OUT", "FP32", "3, 224, 224")),
                        step.formatted("prepare"))
                .file("prepare", "1/pictures.py", PICTURES)
                .model(
                        "features",
                        config(tensor("IN", "FP32", "3, 224, 224"), tensor("OUT", "FP32", "1, 192"))
                                + "instance_group { count: 2 kind: KIND_CPU }",
                        step.formatted("features"))
                .file("features", "1/pictures.py", PICTURES)
                .model(
                        "sequence",
                        picture,
                        calls.formatted(
                                "",
                                "call('prepare', request.inputs()[0]).exec()",
                                "[call('features', prepared).exec() for _ in range(3)]"))
                .model(
                        "at_once",
                        picture,
                        calls.formatted(
                                "async",
                                "await call('prepare', request.inputs()[0]).async_exec()",
                                "await asyncio.gather(*[call('features', prepared).async_exec() for _ in range(3)])"))
                .start()) {
            byte[] pixels = new byte[150 * 200 * 3];
            for (int i = 0; i < pixels.length; i++) {
                pixels[i] = (byte) (i * 7 + i / 450);
            }
            dev.nereid.spi.Tensor tensor = dev.nereid.spi.Tensor.of(
                    dev.nereid.spi.DataType.UINT8,
                    Shape.of(150, 200, 3),
                    java.lang.foreign.Arena.ofAuto().allocateFrom(java.lang.foreign.ValueLayout.JAVA_BYTE, pixels));
            Files.writeString(directory.resolve("pictures.py"), PICTURES);
            List<String> plain = List.of(python(directory, """
                    import numpy as np, pictures
                    i = np.arange(150 * 200 * 3)
                    p = (i * 7 + i // 450).astype(np.uint8).reshape(150, 200, 3)
                    x = pictures.prepare(p)
                    print(x.tobytes().hex(), pictures.features(np.ascontiguousarray(x)).tobytes().hex() * 3)
                    """).split(" ", -1));
            BiFunction<String, String, String> sent = (model, output) ->
                    hex(server.send(server.request(model).input("IN", tensor)).one(), output);
            assertThat(sent.apply("prepare", "OUT").equals(plain.get(0))).isTrue();
            assertThat(sent.apply("sequence", "OUT")).isEqualTo(plain.get(1));
            assertThat(sent.apply("at_once", "OUT")).isEqualTo(plain.get(1));
        }
    }

    /** Keeps state in the object by correlation id, for clients whose chunks are interleaved. */
    @Test
    void recognizesSpeechAsPlainPython(@TempDir Path directory) throws Exception {
        String model = """
                import numpy as np
                import triton_python_backend_utils as pb_utils
                from speech import State


                class TritonPythonModel:
                    def initialize(self, args):
                        self.states = {}

                    def execute(self, requests):
                        responses = []
                        for request in requests:
                            get = lambda name: pb_utils.get_input_tensor_by_name(request, name).as_numpy()
                            start, end, key = get("START")[0][0], get("END")[0][0], int(get("CORRID")[0][0])
                            if start:
                                self.states[key] = State()
                            frames, level = self.states[key].feed(get("SAMPLES")[0], bool(end))
                            if end:
                                del self.states[key]
                            responses.append(pb_utils.InferenceResponse([
                                pb_utils.Tensor("FRAMES", frames[np.newaxis]),
                                pb_utils.Tensor("LEVEL", np.array([[level]], dtype=np.float64))]))
                        return responses
                """;
        String config = config(
                        tensor("SAMPLES", "FP32", "-1"),
                        tensor("FRAMES", "FP32", "-1, 40") + "," + tensor("LEVEL", "FP64", "1"))
                + """
                max_batch_size: 8
                sequence_batching { oldest { max_candidate_sequences: 8 }
                  control_input [
                    { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
                    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
                    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] } ] }
                """;
        int[] chunks = {1000, 37, 0, 4000, 159};
        try (PythonServer server = PythonServer.builder()
                .model("speech_model", config, model)
                .file("speech_model", "1/speech.py", SPEECH)
                .start()) {
            List<List<ReceivedResponses>> sent = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
            float[] all = samples(6000);
            int from = 0;
            for (int i = 0; i < chunks.length; i++) {
                float[] chunk = java.util.Arrays.copyOfRange(all, from, from + chunks[i]);
                from += chunks[i];
                for (int client = 0; client < 3; client++) {
                    ModelRequest request = server.request("speech_model")
                            .sequence(Sequence.of(client + 1, i == 0, i == chunks.length - 1))
                            .input("SAMPLES", Shape.of(1, chunk.length), chunk);
                    sent.get(client).add(server.send(request));
                }
            }
            Files.writeString(directory.resolve("speech.py"), SPEECH);
            StringBuilder bytes = new StringBuilder();
            for (float sample : all) {
                bytes.append("%08x".formatted(Integer.reverseBytes(Float.floatToRawIntBits(sample))));
            }
            String plain = python(directory, """
                    import numpy as np
                    from speech import State
                    x, s, at = np.frombuffer(bytes.fromhex("%s"), dtype=np.float32), State(), 0
                    for i, n in enumerate([1000, 37, 0, 4000, 159]):
                        frames, level = s.feed(x[at:at + n], i == 4)
                        at += n
                        print(frames.tobytes().hex(), np.array([[level]]).tobytes().hex(), sep="/")
                    """.formatted(bytes));
            for (List<ReceivedResponses> client : sent) {
                assertThat(client.stream()
                                .map(ReceivedResponses::one)
                                .map(one -> hex(one, "FRAMES") + "/" + hex(one, "LEVEL"))
                                .toList())
                        .isEqualTo(plain.lines().toList());
            }
        }
    }

    /** Streams of a generator, from threads and from an event loop of the model's own. */
    @Test
    void streamsAsPlainPython(@TempDir Path directory) throws Exception {
        String words = """
                def words(prompt, count):
                    state = sum(prompt.encode())
                    for i in range(count):
                        state = (state * 1103515245 + 12345) % 2**31
                        yield f"{prompt[i % len(prompt)]}{state % 997}"
                """;
        String threads = """
                import threading
                import numpy as np
                import triton_python_backend_utils as pb_utils
                from words import words


                def response(word):
                    return pb_utils.InferenceResponse([pb_utils.Tensor("WORD", np.array([word], dtype=np.object_))])


                class TritonPythonModel:
                    def initialize(self, args):
                        self.threads, self.lock = 0, threading.Lock()

                    def execute(self, requests):
                        for request in requests:
                            with self.lock:
                                self.threads += 1
                            prompt = pb_utils.get_input_tensor_by_name(request, "PROMPT").as_numpy()[0].decode()
                            threading.Thread(target=self.run, args=(prompt, request.get_response_sender()), daemon=True).start()
                        return None

                    def run(self, prompt, sender):
                        for word in words(prompt, 200):
                            sender.send(response(word))
                        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                        with self.lock:
                            self.threads -= 1

                    def finalize(self):
                        assert self.threads == 0
                """;
        String loop = threads.replace("import threading\n", "import asyncio\nimport threading\n")
                .replace(
                        "self.threads, self.lock = 0, threading.Lock()",
                        "self.threads, self.lock = 0, threading.Lock()\n        self.loop = asyncio.new_event_loop()\n"
                                + "        threading.Thread(target=self.loop.run_forever, daemon=True).start()")
                .replace(
                        "threading.Thread(target=self.run, args=(prompt, request.get_response_sender()), daemon=True).start()",
                        "asyncio.run_coroutine_threadsafe(self.run(prompt, request.get_response_sender()), self.loop)")
                .replace("    def run(", "    async def run(")
                .replace(
                        "sender.send(response(word))",
                        "sender.send(response(word))\n            await asyncio.sleep(0)");
        String config = config(tensor("PROMPT", "STRING", "1"), tensor("WORD", "STRING", "1"))
                + "model_transaction_policy { decoupled: true }";
        try (PythonServer server = PythonServer.builder()
                .model("threads", config, threads)
                .file("threads", "1/words.py", words)
                .model("loop", config, loop)
                .file("loop", "1/words.py", words)
                .start()) {
            Files.writeString(directory.resolve("words.py"), words);
            for (String model : List.of("threads", "loop")) {
                List<String> prompts = List.of("Hällo", "日本", "x", "another prompt");
                List<ReceivedResponses> sent = prompts.stream()
                        .map(prompt -> server.send(server.request(model).input("PROMPT", Shape.of(1), prompt)))
                        .toList();
                String plain = python(directory, """
                        import sys
                        from words import words
                        sys.stdout.reconfigure(encoding="utf-8")
                        for p in ["Hällo", "日本", "x", "another prompt"]:
                            print(" ".join(words(p, 200)))
                        """);
                assertThat(sent.stream()
                                .map(received -> String.join(
                                        " ",
                                        received.all().stream()
                                                .map(one -> one.requireOutput("WORD")
                                                        .strings()
                                                        .getFirst())
                                                .toList())))
                        .isEqualTo(plain.lines().toList());
            }
        }
    }
}
