package dev.nereid.backend.python.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ModelCallsTest {
    private static final Shape TWO = Shape.of(1, 2);
    private static final String DECOUPLED = "Model stream is using the decoupled. The current BLS request call doesn't"
            + " support models using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or"
            + " 'async_exec' calls for decoupled models.'";

    private final LeakCheckingMemory outputs = new LeakCheckingMemory();
    private final FakeModelClient models = new FakeModelClient(outputs, "twice", "busy").withDecoupled("stream");
    private final FakeTensorMemory memory = new FakeTensorMemory();
    private final SentFrames sent = new SentFrames(memory);
    private final RecordedLog log = new RecordedLog();
    private final ModelCalls calls = new ModelCalls(models, sent, memory, 16, log);

    @AfterEach
    void leavesNothing() {
        assertThat(memory.held).hasValue(0);
        assertThat(memory.allocated).isEmpty();
        assertThat(models.sent()).allMatch(request -> request.openResponses() == 0);
        outputs.close();
    }

    private FakeModelRequest call(CallWriter writer) {
        calls.onCall(writer.frame(), _ -> null);
        return models.sent().getLast();
    }

    private static Map<String, Tensor> output(float... values) {
        return Map.of("OUT", Tensor.ofFloats(Shape.of(1, values.length), values));
    }

    private static BackendException error(ErrorCode code, String text) {
        return new BackendException(code, text);
    }

    @Test
    void sendsTheRequestWithAllItHas() {
        FakeModelRequest request = call(new CallWriter(1, "twice")
                .version(3)
                .timeout(70)
                .requestId("r")
                .sequence(0, "seq", 3)
                .output("OUT")
                .output("OTHER")
                .parameter("flag", true)
                .parameter("number", -5L)
                .parameter("text", "ä")
                .input("IN", Tensor.ofFloats(TWO, 1, 2))
                .input("TEXTS", Tensor.ofStrings(Shape.of(1), List.of("abc"))));

        assertThat(request.model()).isEqualTo("twice");
        assertThat(request.version()).isEqualTo(OptionalLong.of(3));
        assertThat(request.timeoutMicros()).isEqualTo(70);
        assertThat(request.id()).isEqualTo("r");
        assertThat(request.sequence()).isEqualTo(Optional.of(Sequence.of("seq", true, true)));
        assertThat(request.outputs()).containsExactly("OUT", "OTHER");
        assertThat(request.parameters().asMap()).isEqualTo(Map.of("flag", true, "number", -5L, "text", "ä"));
        assertThat(request.inputs().get("IN").floats()).containsExactly(1, 2);
        assertThat(request.inputs().get("IN").name()).contains("IN");
        assertThat(request.inputs().get("TEXTS").strings()).containsExactly("abc");
        assertThat(request.cause()).isEmpty();
        request.complete();
    }

    @Test
    void leavesOutWhatIsNotSet() {
        FakeModelRequest request = call(new CallWriter(1, "twice").sequence(0, "", 1));

        assertThat(request.version()).isEmpty();
        assertThat(request.sequence()).isEmpty();
        assertThat(request.outputs()).isEmpty();
        request.complete();

        request = call(new CallWriter(2, "twice").sequence(-1, "", 1));
        assertThat(request.sequence()).isEqualTo(Optional.of(Sequence.of(-1L, true, false)));
        request.complete();
    }

    @Test
    void readsInputsOfSharedMemoryInPlaceUntilNothingReadsThemAnyMore() {
        memory.outgoing.setAtIndex(ValueLayout.JAVA_FLOAT, 2, 5);
        memory.outgoing.setAtIndex(ValueLayout.JAVA_FLOAT, 3, 6);
        byte[] frame = new CallWriter(1, "twice")
                .input("IN", Tensor.ofFloats(TWO, 1, 2))
                .slot("SLOT", DataType.FP32, TWO, FakeTensorMemory.OUTGOING, 8, 8)
                .input("LARGE", Tensor.ofFloats(Shape.of(10_000), new float[10_000]))
                .bytes();
        calls.onCall(CallWriter.reader(frame), _ -> null);
        Arrays.fill(frame, (byte) 0);

        FakeModelRequest request = models.sent().getLast();
        Map<String, Tensor> inputs = request.inputs();
        assertThat(inputs.get("IN").floats()).containsExactly(1, 2);
        assertThat(inputs.get("SLOT").floats()).containsExactly(5, 6);
        assertThat(inputs.get("SLOT").data().address()).isEqualTo(memory.outgoing.address() + 8);
        assertThat(inputs.get("LARGE").byteSize()).isEqualTo(40_000);
        assertThat(inputs.values()).allMatch(input -> input.data().isNative());

        Runnable lease = request.leaseInputs(); // of the other model
        request.respondFinally(output(1));
        assertThat(calls.open()).isZero();
        assertThat(memory.held).hasValue(1);
        assertThat(inputs.get("IN").floats()).containsExactly(1, 2);
        assertThat(inputs.get("LARGE").floats()).hasSize(10_000);
        lease.run();
        assertThat(memory.held).hasValue(0);
        assertThat(inputs.get("LARGE").data().scope().isAlive()).isFalse();
    }

    @Test
    void copiesByteStringsSinceTheProcessMayChangeThem() {
        memory.outgoing.set(ValueLayout.JAVA_INT, 0, 1);
        memory.outgoing.set(ValueLayout.JAVA_BYTE, 4, (byte) 'a');
        calls.onCall(
                new CallWriter(1, "twice")
                        .slot("IN", DataType.BYTES, Shape.of(1), FakeTensorMemory.OUTGOING, 0, 5)
                        .frame(),
                _ -> null);
        assertThat(memory.held).hasValue(0);
        memory.outgoing.fill((byte) 0xff);

        assertThat(models.sent().getLast().inputs().get("IN").strings()).containsExactly("a");
        models.sent().getLast().complete();
    }

    @Test
    void tiesTheRequestToTheBatchOfItsExecution() {
        FakeRequest cause = new FakeRequest(1, List.of("OUT")).withId("cause");
        try (LeakCheckingMemory batchMemory = new LeakCheckingMemory();
                FakeBatch batch = new FakeBatch(ModelSettings.builder("m", 1).build(), batchMemory, cause)) {
            calls.onCall(new CallWriter(1, "twice").execution(9).frame(), execution -> execution == 9 ? batch : null);
            FakeModelRequest request = models.sent().getLast();
            assertThat(request.cause()).containsSame(cause);

            cause.cancel();
            assertThat(sent.responses).hasSize(1);
            assertThat(sent.responses.getFirst().flags()).isEqualTo(5);
            assertThat(sent.responses.getFirst().code()).isEqualTo(7);
            assertThat(calls.open()).isZero();
        }
    }

    @Test
    void refusesARequestWhoseCauseIsFinished() {
        Batch finished = (Batch) java.lang.reflect.Proxy.newProxyInstance(
                Batch.class.getClassLoader(), new Class<?>[] {Batch.class}, (_, _, _) -> {
                    throw new IllegalStateException("its execution is finished");
                });

        calls.onCall(new CallWriter(1, "twice").execution(9).frame(), _ -> finished);

        assertThat(models.sent()).isEmpty();
        assertRefused("internal error: java.lang.IllegalStateException: its execution is finished");
        assertThat(log.lines()).hasSize(1);
    }

    private void assertRefused(String text) {
        assertThat(sent.responses).containsExactly(new SentFrames.Response(1, 1 | 4 | 8, 1, text, "", Map.of()));
        assertThat(calls.open()).isZero();
    }

    @Test
    void sendsTheResponseOfACallAsOneFinalFrame() {
        FakeModelRequest request = call(new CallWriter(1, "twice"));
        assertThat(calls.open()).isOne();
        Map<String, Tensor> values = new LinkedHashMap<>();
        values.put("Z", Tensor.ofFloats(TWO, 1, 2));
        values.put("LARGE", Tensor.ofFloats(Shape.of(5), 1, 2, 3, 4, 5));
        values.put("TEXTS", Tensor.ofStrings(Shape.of(2), List.of("ä", "b")));
        values.put("NONE", Tensor.ofFloats(Shape.of(0, 4)));
        request.respondFinally(values);

        SentFrames.Response response = sent.responses.getFirst();
        assertThat(sent.responses).hasSize(1);
        assertThat(response.call()).isOne();
        assertThat(response.flags()).isEqualTo(3);
        assertThat(response.outputs().keySet()).containsExactly("Z", "LARGE", "TEXTS", "NONE");
        assertThat(response.outputs().get("Z").floats()).containsExactly(1, 2);
        assertThat(response.outputs().get("LARGE").floats()).containsExactly(1, 2, 3, 4, 5);
        assertThat(response.outputs().get("TEXTS").strings()).containsExactly("ä", "b");
        assertThat(response.outputs().get("NONE").shape()).isEqualTo(Shape.of(0, 4));
        assertThat(sent.inSlots).containsExactly(false, true, false, false);
        assertThat(calls.open()).isZero();
    }

    @Test
    void sendsALargeOutputInTheFrameIfNoSlotIsLeft() {
        memory.slotsLeft.set(1);
        FakeModelRequest request = call(new CallWriter(1, "twice"));
        Map<String, Tensor> values = new LinkedHashMap<>();
        values.put("A", Tensor.ofFloats(Shape.of(5), 1, 2, 3, 4, 5));
        values.put("B", Tensor.ofFloats(Shape.of(6), 1, 2, 3, 4, 5, 6));
        request.respondFinally(values);

        assertThat(sent.inSlots).containsExactly(true, false);
        assertThat(sent.responses.getFirst().outputs().get("B").floats()).containsExactly(1, 2, 3, 4, 5, 6);
    }

    @Test
    void endsTheCallWithAnErrorIfAResponseCannotBeWritten() {
        memory.slotsLeft.set(1);
        FakeModelRequest request = call(new CallWriter(1, "stream").stream(8));
        Map<String, Tensor> values = new LinkedHashMap<>();
        values.put("A", Tensor.ofFloats(Shape.of(5), 1, 2, 3, 4, 5));
        values.put("n".repeat(70_000), Tensor.ofFloats(TWO, 1, 2));
        request.respond(values);
        request.respond(values);

        assertThat(sent.responses).hasSize(1);
        assertThat(sent.responses.getFirst().flags()).isEqualTo(5);
        assertThat(sent.responses.getFirst().text()).contains("70000 (expected: at most 65535)");
        assertThat(request.isComplete()).isTrue();
        assertThat(calls.open()).isZero();
    }

    @Test
    void passesTheErrorOfAModelOnWithItsCode() {
        call(new CallWriter(1, "twice")).fail(error(ErrorCode.UNAVAILABLE, "Request timeout expired"));

        assertThat(sent.responses)
                .containsExactly(new SentFrames.Response(1, 1 | 4, 4, "Request timeout expired", "", Map.of()));
        assertThat(calls.open()).isZero();
    }

    @Test
    void refusesWithTheTextOfTheServer() {
        String text = "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'twice'.";
        call(new CallWriter(1, "twice")).refuse(error(ErrorCode.INVALID_ARGUMENT, text));
        assertRefused(text);
    }

    @Test
    void keepsTheTextOfARefusalOfAReadyModel() {
        call(new CallWriter(1, "busy")).refuse(error(ErrorCode.UNAVAILABLE, "Exceeds maximum queue size"));
        assertRefused("Exceeds maximum queue size");
    }

    @Test
    void hasOneTextForModelsThatAreNotServed() {
        String text = "Failed for execute the inference request. Model 'nosuch' is not ready.";
        calls.onCall(new CallWriter(1, "nosuch").frame(), _ -> null); // refused by isDecoupled
        assertRefused(text);

        sent.responses.clear();
        call(new CallWriter(1, "nosuch").stream(4)).refuse(error(ErrorCode.NOT_FOUND, "Request for unknown model"));
        assertRefused(text);

        sent.responses.clear();
        var _ = models.unload("twice");
        call(new CallWriter(1, "twice")).refuse(error(ErrorCode.UNAVAILABLE, "not at ready state"));
        assertRefused("Failed for execute the inference request. Model 'twice' is not ready.");

        sent.responses.clear();
        calls.onCall(new CallWriter(1, "busy").version(-2).frame(), _ -> null);
        assertRefused("Failed for execute the inference request. Model 'busy' is not ready.");
    }

    @Test
    void refusesACallOfADecoupledModelForOneResponse() {
        calls.onCall(new CallWriter(1, "stream").frame(), _ -> null);

        assertThat(models.sent()).isEmpty();
        assertRefused(DECOUPLED);
    }

    @Test
    void refusesAModelThatHasBecomeDecoupled() {
        FakeModelRequest request = call(new CallWriter(1, "twice"));
        request.respond(output(1));
        assertThat(sent.responses).isEmpty();
        request.respond(output(2));

        assertThat(request.isComplete()).isTrue();
        assertRefused(DECOUPLED.replace("Model stream", "Model twice"));
    }

    @Test
    void takesOneResponseThatIsNotFinal() {
        FakeModelRequest request = call(new CallWriter(1, "twice"));
        request.respond(output(1));
        request.complete();

        assertThat(sent.responses).hasSize(1);
        assertThat(sent.responses.getFirst().flags()).isEqualTo(3);
    }

    @Test
    void closesTheResponseOfACallThatFailsAfterwards() {
        FakeModelRequest request = call(new CallWriter(1, "twice"));
        request.respond(output(1));
        request.fail(error(ErrorCode.INTERNAL, "late"));

        assertThat(sent.responses).containsExactly(new SentFrames.Response(1, 5, 1, "late", "", Map.of()));
    }

    @Test
    void endsAStreamByTheFlagAlone() {
        FakeModelRequest request = call(new CallWriter(1, "stream").stream(8));
        request.respond(output(1));
        request.respond(output(2));
        request.complete();

        assertThat(sent.responses).extracting(SentFrames.Response::flags).containsExactly(2, 2, 1);
        assertThat(calls.open()).isZero();
    }

    @Test
    void endsAStreamByItsFinalResponse() {
        FakeModelRequest request = call(new CallWriter(1, "twice").stream(8));
        request.respondFinally(output(1));

        assertThat(sent.responses).extracting(SentFrames.Response::flags).containsExactly(3);
    }

    @Test
    void holdsResponsesBeyondTheWindowUntilTheyAreAllowed() {
        FakeModelRequest request = call(new CallWriter(1, "stream").stream(2));
        AtomicInteger goesOn = new AtomicInteger();
        request.respond(output(1));
        assertThat(request.isReady()).isTrue();
        request.respond(output(2));
        assertThat(request.isReady()).isFalse();
        request.onReady(goesOn::incrementAndGet);
        request.respond(output(3));
        request.respond(output(4));
        request.complete();
        assertThat(sent.responses).hasSize(2);

        calls.onCredit(1, 1);
        assertThat(sent.responses).hasSize(3);
        calls.onCredit(1, 3);
        assertThat(sent.responses).extracting(SentFrames.Response::flags).containsExactly(2, 2, 2, 2, 1);
        assertThat(sent.responses.get(3).outputs().get("OUT").floats()).containsExactly(4);
        assertThat(goesOn).hasValue(1);
        assertThat(calls.open()).isZero();
        calls.onCredit(1, 1);
    }

    @Test
    void letsTheModelGoOnWhenMoreIsAllowed() {
        FakeModelRequest request = call(new CallWriter(1, "stream").stream(1));
        AtomicInteger goesOn = new AtomicInteger();
        request.onReady(goesOn::incrementAndGet);
        assertThat(goesOn).hasValue(1);
        request.respond(output(1));
        request.onReady(goesOn::incrementAndGet);
        request.onReady(() -> goesOn.addAndGet(10));
        assertThat(goesOn).hasValue(1);
        calls.onCredit(1, 1);
        assertThat(goesOn).hasValue(11);
        calls.onCredit(1, 1);
        assertThat(goesOn).hasValue(11);
        request.complete();
    }

    @Test
    void endsAStreamOfWhichTooMuchWaits() {
        FakeModelRequest request = call(new CallWriter(1, "stream").stream(1));
        Tensor large = Tensor.of(
                DataType.UINT8,
                Shape.of(40 << 20),
                java.lang.foreign.Arena.ofAuto().allocate(40 << 20));
        request.respond(output(1));
        request.respond(Map.of("OUT", large));
        assertThat(request.isComplete()).isFalse();
        request.respond(Map.of("OUT", large));

        assertThat(request.isComplete()).isTrue();
        assertThat(sent.responses).hasSize(2);
        assertThat(sent.responses.get(1).flags()).isEqualTo(5);
        assertThat(sent.responses.get(1).text()).startsWith("2 responses of a model wait, more than 64 MiB");
        assertThat(calls.open()).isZero();
    }

    @Test
    void cancelsACall() {
        FakeModelRequest request = call(new CallWriter(1, "stream").stream(1));
        AtomicInteger goesOn = new AtomicInteger();
        request.respond(output(1));
        request.respond(output(2));
        request.onReady(goesOn::incrementAndGet);
        calls.onCancel(1);
        calls.onCancel(2);

        assertThat(request.isComplete()).isTrue();
        assertThat(goesOn).hasValue(1);
        assertThat(sent.responses).hasSize(1); // the second one first, when it is allowed
        calls.onCredit(1, 1);
        assertThat(sent.responses).extracting(SentFrames.Response::flags).containsExactly(2, 2, 5);
        assertThat(sent.responses.get(2).code()).isEqualTo(7);
    }

    @Test
    void dropsResponsesAndLetsTheModelGoOn() {
        FakeModelRequest request = call(new CallWriter(1, "stream").stream(1));
        AtomicInteger goesOn = new AtomicInteger();
        request.respond(output(1));
        request.respond(output(2));
        request.onReady(goesOn::incrementAndGet);
        calls.onDrop(1);
        assertThat(goesOn).hasValue(1);
        assertThat(request.isReady()).isTrue();
        assertThat(request.openResponses()).isZero();
        request.respond(output(3));
        assertThat(request.isComplete()).isFalse();
        assertThat(calls.open()).isOne();
        request.complete();

        assertThat(sent.responses).hasSize(1);
        assertThat(calls.open()).isZero();
        calls.onDrop(1);
    }

    @Test
    void closesAllCalls() {
        AtomicInteger idle = new AtomicInteger();
        FakeModelRequest stream = call(new CallWriter(1, "stream").stream(1));
        stream.respond(output(1));
        stream.respond(output(2));
        FakeModelRequest single = call(new CallWriter(2, "twice"));
        single.respond(output(1));
        calls.onIdle(idle::incrementAndGet);
        assertThat(idle).hasValue(0);
        calls.close();
        calls.close();

        assertThat(stream.isComplete()).isTrue();
        assertThat(single.isComplete()).isTrue();
        assertThat(calls.open()).isZero();
        assertThat(idle).hasValue(1);
        assertThat(sent.responses).hasSize(1);
        calls.onCall(
                new CallWriter(3, "twice")
                        .slot("IN", DataType.UINT8, Shape.of(4), FakeTensorMemory.OUTGOING, 0, 4)
                        .frame(),
                _ -> null);
        assertThat(models.sent()).hasSize(2);
    }

    @Test
    void refusesMoreCallsThanTheBound() {
        for (int i = 1; i <= ModelCalls.MAX_CALLS; i++) {
            calls.onCall(new CallWriter(i, "twice").frame(), _ -> null);
        }
        assertThat(calls.open()).isEqualTo(ModelCalls.MAX_CALLS);
        calls.onCall(new CallWriter(20_000, "twice").frame(), _ -> null);

        assertThat(sent.responses).hasSize(1);
        assertThat(sent.responses.getFirst().flags()).isEqualTo(13);
        assertThat(sent.responses.getFirst().text()).startsWith("10000 calls of models are in progress");
        models.sent().forEach(FakeModelRequest::complete);
        assertThat(calls.open()).isZero();
    }

    /** NumPy makes no such array either. */
    @Test
    void takesAShapeWithoutANumberOfElementsForABrokenFrame() {
        FrameReader frame = new CallWriter(1, "twice")
                .slot("IN", DataType.FP32, Shape.of(0, 1L << 62, 1L << 62), FakeTensorMemory.OUTGOING, 0, 0)
                .frame();

        assertThatThrownBy(() -> calls.onCall(frame, _ -> null))
                .isInstanceOf(FrameException.class)
                .hasMessageContaining("a shape of more elements than memory has");

        assertThat(models.sent()).isEmpty();
        assertThat(calls.open()).isZero();
    }

    @Test
    void takesABrokenFrameForABrokenFrame() {
        byte[] frame = new CallWriter(1, "twice")
                .requestId("r")
                .output("OUT")
                .parameter("text", "abc")
                .input("IN", Tensor.ofFloats(TWO, 1, 2))
                .slot("SLOT", DataType.FP32, TWO, FakeTensorMemory.OUTGOING, 8, 8)
                .slot("OTHER", DataType.FP32, TWO, FakeTensorMemory.OUTGOING, 16, 8)
                .bytes();
        int broken = 0;
        for (int length = 16; length < frame.length - 7; length++) {
            byte[] cut = Arrays.copyOf(frame, length);
            assertThatThrownBy(() -> calls.onCall(CallWriter.reader(cut), _ -> null))
                    .isInstanceOf(FrameException.class);
            assertThat(memory.held).hasValue(0);
            broken++;
        }
        assertThat(broken).isGreaterThan(200);
        assertThat(memory.holds.get()).isGreaterThan(10);
        assertThat(models.sent()).isEmpty();
        assertThat(calls.open()).isZero();
    }

    @Test
    void refusesForeignSegmentsAndNumbersInUse() {
        CallWriter foreign = new CallWriter(1, "twice")
                .slot("A", DataType.FP32, TWO, FakeTensorMemory.OUTGOING, 8, 8)
                .slot("B", DataType.FP32, TWO, 7, 8, 8);
        assertThatThrownBy(() -> calls.onCall(foreign.frame(), _ -> null))
                .isInstanceOf(FrameException.class)
                .hasMessageContaining("input 'B' of a call");

        FakeModelRequest request = call(new CallWriter(1, "twice"));
        assertThatThrownBy(() -> call(new CallWriter(1, "twice")))
                .isInstanceOf(FrameException.class)
                .hasMessageContaining("call: 1");
        request.complete();
    }

    @Test
    void survivesFramesOfRandomBytes() {
        java.util.random.RandomGenerator random = java.util.random.RandomGenerator.of("L64X128MixRandom");
        byte[] valid = new CallWriter(1, "twice")
                .output("OUT")
                .parameter("text", "abc")
                .input("IN", Tensor.ofFloats(TWO, 1, 2))
                .slot("SLOT", DataType.FP32, TWO, FakeTensorMemory.OUTGOING, 8, 8)
                .bytes();
        for (int i = 0; i < 20_000; i++) {
            byte[] changed = valid.clone();
            for (int n = random.nextInt(1, 4); n > 0; n--) {
                changed[random.nextInt(16, changed.length)] = (byte) random.nextInt();
            }
            try {
                calls.onCall(CallWriter.reader(changed), _ -> null);
            } catch (FrameException _) { // as expected
            }
            models.sent().stream().filter(one -> !one.isComplete()).forEach(ModelRequest::cancel);
            assertThat(memory.held).hasValue(0);
            if (models.sent().size() > 100) {
                break;
            }
        }
        assertThat(calls.open()).isZero();
    }

    private static @Nullable Batch none(long execution) {
        return null;
    }

    @Test
    void refusesARequestWhenSendingThrows() {
        FakeModelClient broken = new FakeModelClient(
                outputs,
                request -> {
                    throw new IllegalStateException("not now");
                },
                "twice");
        ModelCalls other = new ModelCalls(broken, sent, memory, 16, log);
        other.onCall(
                new CallWriter(1, "twice")
                        .slot("IN", DataType.UINT8, Shape.of(4), FakeTensorMemory.OUTGOING, 0, 4)
                        .input("OTHER", Tensor.ofFloats(TWO, 1, 2))
                        .frame(),
                ModelCallsTest::none);

        assertThat(other.open()).isZero();
        assertThat(memory.held).hasValue(0);
        assertRefused("internal error: java.lang.IllegalStateException: not now");
    }
}
