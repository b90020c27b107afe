package dev.nereid.scheduler.sequence;

import dev.nereid.scheduler.FakeInstance;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Answers a request of {@code IN} as often as that number says, once for each step, with the step by the state that the
 * server keeps. Records the requests of each step and their control inputs.
 */
final class Countdown implements FakeInstance.Execution {
    private final List<String> batches = new ArrayList<>();

    /** The request that fails in its second step; 0 for none. */
    private final float failing;

    Countdown(float failing) {
        this.failing = failing;
    }

    @Override
    public void execute(Batch batch) {
        List<String> rows = new ArrayList<>();
        for (InferenceRequest request : batch.requests()) {
            rows.add(request.isNullRequest() ? "-" : request.id() + flags(request));
            if (!request.isNullRequest()) {
                step(request);
            }
        }
        batches.add(String.join(" ", rows));
    }

    private static String flags(InferenceRequest request) {
        boolean start = request.requireInput("START").data().get(ValueLayout.JAVA_INT_UNALIGNED, 0) != 0;
        boolean end = request.requireInput("END").data().get(ValueLayout.JAVA_BYTE, 0) != 0;
        if (start != request.sequence().orElseThrow().start()) {
            throw new AssertionError("START is " + start + ", but the request says something else");
        }
        return (start ? "S" : "") + (end ? "E" : "");
    }

    private void step(InferenceRequest request) {
        float steps = request.requireInput("IN").data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
        float step = request.requireInput("STEP_IN").data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0) + 1;
        if (steps == failing && step == 2) {
            request.fail(new BackendException(ErrorCode.INTERNAL, "request " + request.id() + " fails"));
            return;
        }
        Tensor next = request.state("STEP_OUT").allocate(DataType.FP32, Shape.of(1, 1));
        next.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, step);
        ResponseSender sender = request.sender();
        InferenceResponse response = sender.newResponse();
        response.allocate("OUT", DataType.FP32, Shape.of(1, 1)).data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, step);
        sender.send(response);
        if (step < steps) {
            request.reschedule();
        } else {
            sender.complete();
        }
    }

    /** Returns and forgets the requests of each batch, S for START and E for END. */
    List<String> batches() {
        List<String> seen = List.copyOf(batches);
        batches.clear();
        return seen;
    }
}
