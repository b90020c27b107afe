package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The stack of a backend is used up inside one of its calls into the scheduler. */
@Timeout(60)
final class UsedUpStackTest {
    private static final Shape PAIRS = Shape.of(2, 2);
    private static final long STACK_SIZE = 256 << 10;

    /** A call of a backend. */
    enum Call {
        ALLOCATE,
        PUT,
        GATHER,
        RESPOND
    }

    /** A call of a backend that completes a request. */
    enum Completion {
        SENDER_COMPLETE,
        SENDER_SEND,
        SENDER_FAIL,
        REQUEST_FAIL,
        DEFERRED_COMPLETE,
        DEFERRED_FAIL
    }

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    /** Each attempt of the backend ends in another frame of the scheduler. */
    @ParameterizedTest
    @EnumSource
    void losesNoRequestAndNoMemory(Call call) throws InterruptedException {
        execute(batch -> call(call, batch)); // loads the classes
        execute(batch -> callFromTheEnd(() -> call(call, batch)));
    }

    /** Without enough stack the call changes nothing. */
    @ParameterizedTest
    @EnumSource
    void losesNoCompletion(Completion completion) throws InterruptedException {
        execute(batch -> prepare(completion, batch).run()); // loads the classes
        execute(batch -> callFromTheEnd(prepare(completion, batch)));
    }

    @ParameterizedTest
    @EnumSource
    void failsTheExecution(Call call) throws InterruptedException {
        execute(
                batch -> {
                    call(call, batch);
                    callFromTheEnd(() -> {
                        throw new StackOverflowError("in every frame");
                    });
                },
                execution -> assertThat(execution.observers)
                        .allSatisfy(observer ->
                                assertThat(observer.error().publicMessage()).contains("StackOverflowError")));
    }

    /** Makes a call at the end of the stack, and again with one frame more until it succeeds. */
    private static void callFromTheEnd(Runnable call) {
        callFrom(0, call);
    }

    private static void callFrom(int depth, Runnable call) {
        try {
            if (depth < Integer.MAX_VALUE) {
                callFrom(depth + 1, call);
            }
        } catch (StackOverflowError e) {
            call.run();
        }
    }

    private static void call(Call call, Batch batch) {
        switch (call) {
            case ALLOCATE -> batch.allocate("OUT", DataType.FP32, PAIRS);
            case PUT -> {
                Tensor output =
                        Tensor.of(DataType.FP32, PAIRS, Arena.ofAuto().allocate(PAIRS.byteSize(DataType.FP32), 64));
                batch.put("OUT", output, () -> {});
            }
            case GATHER -> batch.gather("IN");
            case RESPOND -> batch.requests().getFirst().response().allocate("OUT", DataType.FP32, PAIRS.withFirst(1));
        }
    }

    private static Runnable prepare(Completion completion, Batch batch) {
        InferenceRequest request = batch.requests().getFirst();
        BackendException error = new BackendException(ErrorCode.INTERNAL, "of a test");
        return switch (completion) {
            case SENDER_COMPLETE -> {
                ResponseSender sender = request.sender();
                InferenceResponse response = response(sender);
                yield () -> sender.complete(response);
            }
            case SENDER_SEND -> {
                ResponseSender sender = request.sender();
                InferenceResponse response = response(sender);
                AtomicBoolean sent = new AtomicBoolean();
                yield () -> {
                    if (!sent.get()) {
                        sender.send(response);
                        sent.set(true);
                    }
                    sender.complete();
                };
            }
            case SENDER_FAIL -> {
                ResponseSender sender = request.sender();
                yield () -> sender.fail(error);
            }
            case REQUEST_FAIL -> () -> request.fail(error);
            case DEFERRED_COMPLETE -> batch.defer()::complete;
            case DEFERRED_FAIL -> {
                DeferredExecution execution = batch.defer();
                yield () -> execution.fail(error);
            }
        };
    }

    private static InferenceResponse response(ResponseSender sender) {
        InferenceResponse response = sender.newResponse();
        response.allocate("OUT", DataType.FP32, PAIRS.withFirst(1));
        return response;
    }

    private void execute(FakeInstance.Execution backend) throws InterruptedException {
        execute(backend, _ -> {});
    }

    /** Executes a batch of two requests on a thread with a small stack. */
    private void execute(FakeInstance.Execution backend, Consumer<Execution> check) throws InterruptedException {
        List<Throwable> failures = new CopyOnWriteArrayList<>();
        Runnable run = () -> {
            try (Execution execution = new Execution(model, backend)) {
                Execution.submit(execution, 1, 1);
                execution.run();
                check.accept(execution);
            }
        };
        Thread thread = new Thread(null, run, "small-stack", STACK_SIZE);
        thread.setUncaughtExceptionHandler((_, failure) -> failures.add(failure));
        thread.start();
        thread.join();
        assertThat(failures).isEmpty();
    }
}
