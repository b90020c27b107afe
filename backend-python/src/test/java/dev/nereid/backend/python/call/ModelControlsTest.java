package dev.nereid.backend.python.call;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;

class ModelControlsTest {
    private final FakeTensorMemory memory = new FakeTensorMemory();
    private final SentFrames sent = new SentFrames(memory);
    private final FakeModelClient models = new FakeModelClient(new LeakCheckingMemory(), "m");
    private final RecordedLog log = new RecordedLog();
    private final ModelCalls calls = new ModelCalls(models, sent, memory, 16, log);

    private static FrameWriter control(int operation) {
        return new FrameWriter().begin(FrameType.CONTROL, operation, 0, 5);
    }

    private static byte[] bytes(FrameWriter writer) {
        return writer.end().frame().toArray(ValueLayout.JAVA_BYTE);
    }

    private static FrameReader frame(FrameWriter writer) {
        return CallWriter.reader(bytes(writer));
    }

    private static FrameWriter ready(String model, String version) {
        return control(3).text(model).text(version);
    }

    private static SentFrames.Reply reply(double value) {
        return new SentFrames.Reply(5, false, value, "");
    }

    private static SentFrames.Reply error(String text) {
        return new SentFrames.Reply(5, true, 0, text);
    }

    @Test
    void loadsAndUnloads() {
        calls.onControl(frame(control(1).text("a").text("").u32(0)));
        calls.onControl(frame(control(1)
                .text("b")
                .text("{}")
                .u32(1)
                .text("file:1/model.onnx")
                .u32(3)
                .bytes("abc".getBytes(UTF_8))));
        calls.onControl(frame(control(2).text("a").u32(0)));
        calls.onControl(frame(control(2).text("b").u32(1)));

        assertThat(models.controls())
                .containsExactly("load a", "load b with {} and [1/model.onnx]", "unload a", "unload b with dependents");
        assertThat(sent.replies).containsExactly(reply(0), reply(0), reply(0), reply(0));
    }

    @Test
    void refusesFilesWithoutTheirPrefix() {
        calls.onControl(frame(control(1).text("b").text("{}").u32(1).text("1/m").u32(0)));
        assertThat(sent.replies).containsExactly(error("unrecognized load parameter '1/m'."));
        assertThat(models.controls()).isEmpty();
    }

    @Test
    void saysWhetherAModelIsReady() {
        calls.onControl(frame(ready("m", "")));
        calls.onControl(frame(ready("m", "1")));
        var _ = models.unload("m");
        calls.onControl(frame(ready("m", "1")));
        calls.onControl(frame(ready("nosuch", "")));
        calls.onControl(frame(ready("m", "x")));
        calls.onControl(frame(ready("m", "-3")));

        assertThat(sent.replies)
                .containsExactly(
                        reply(1),
                        reply(1),
                        reply(0),
                        reply(0),
                        error("failed to get model version from specified version string 'x' (details: stol), version"
                                + " should be an integral value > 0"),
                        error("invalid model version specified '-3' , version should be an integral value > 0"));
    }

    /** A client of which loads complete when the test says so. */
    private static final class SlowModels implements ModelClient {
        final ConcurrentLinkedQueue<CompletableFuture<Void>> loads = new ConcurrentLinkedQueue<>();

        @Override
        public ModelRequest request(String model) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isReady(String model) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "is not at ready state");
        }

        @Override
        public CompletionStage<Void> load(String model) {
            CompletableFuture<Void> load = new CompletableFuture<>();
            loads.add(load);
            return load;
        }

        @Override
        public CompletionStage<Void> load(String model, String config, Map<String, ByteBuffer> files) {
            return load(model);
        }

        @Override
        public CompletionStage<Void> unload(String model) {
            throw new IllegalStateException("no");
        }
    }

    @Test
    void repliesWhenALoadHasEnded() {
        SlowModels slow = new SlowModels();
        ModelCalls other = new ModelCalls(slow, sent, memory, 16, log);
        FrameWriter load = control(1).text("a").text("").u32(0);
        byte[] frame = bytes(load);
        for (int i = 0; i < ModelControls.MAX_OPEN; i++) {
            other.onControl(CallWriter.reader(frame));
        }
        assertThat(sent.replies).isEmpty();
        other.onControl(CallWriter.reader(frame));
        assertThat(sent.replies).hasSize(1);
        assertThat(sent.replies.getFirst().text()).startsWith("64 loads and unloads with");

        sent.replies.clear();
        slow.loads.remove().completeExceptionally(new BackendException(ErrorCode.NOT_FOUND, "not found"));
        slow.loads
                .remove()
                .completeExceptionally(new CompletionException(new BackendException(ErrorCode.NOT_FOUND, "wrapped")));
        slow.loads.remove().completeExceptionally(new IllegalStateException("defect"));
        assertThat(sent.replies)
                .containsExactly(
                        error("not found"),
                        error("wrapped"),
                        error("internal error: java.lang.IllegalStateException: defect"));
        assertThat(log.lines()).hasSize(1);
        other.onControl(CallWriter.reader(frame));
        assertThat(sent.replies).hasSize(3);

        sent.replies.clear();
        other.onControl(frame(control(2).text("a").u32(0)));
        other.onControl(frame(ready("a", "1")));
        assertThat(sent.replies)
                .containsExactly(error("internal error: java.lang.IllegalStateException: no"), reply(0));
    }

    @Test
    void takesABrokenFrameForABrokenFrame() {
        List<FrameWriter> frames = List.of(
                control(1).text("b").text("{}").u32(1).text("file:a").u32(8).u64(1),
                control(2).text("b").u32(0),
                ready("m", "12"));
        for (FrameWriter writer : frames) {
            byte[] whole = bytes(writer);
            for (int length = 16; length < whole.length - 7; length++) {
                byte[] cut = Arrays.copyOf(whole, length);
                assertThatThrownBy(() -> calls.onControl(CallWriter.reader(cut)))
                        .isInstanceOf(FrameException.class);
            }
        }
        assertThatThrownBy(() -> calls.onControl(frame(control(4)))).isInstanceOf(FrameException.class);
        assertThat(sent.replies).isEmpty();
    }
}
