package dev.nereid.scripted;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Adds a number to each input: OUTPUT0 = INPUT0 + the parameter {@code add} of the model, + INPUT1 if there is one. Confined
 * to one thread at a time.
 *
 * <p>A request may ask for something else. {@code fail}: it fails. {@code omit}: it gets no output. {@code gate}: it waits
 * for the file {@code <id>.<model>.open} in the directory that the model's parameter {@code gates} names, and reports that
 * by {@code <id>.<model>.waiting}; {@code gate-fail}: then it fails. {@code cancel}: it reports the same, and fails when it is cancelled. {@code mark}: its
 * response ends the sequence {@code 77}. A decoupled model sends as many responses as INPUT0 says: 1, 2, 3 and so on, each
 * plus {@code add}; with {@code fail} an error follows.
 *
 * <p>The output SUM is the sum of the inputs of the sequence; INFO and DEADLINE have what came with the request; TIMES are the begin and
 * the end of the execution.
 */
final class ScriptedInstance implements ModelInstance {
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final long TIMEOUT_SECONDS = 60;
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final ModelSettings model;
    private final float add;
    private final Path gates;
    private final Map<Sequence.Id, Float> sums = new HashMap<>();

    ScriptedInstance(ModelContext context) {
        model = context.settings();
        add = Float.parseFloat(context.parameters().text("add").orElse("0"));
        gates = Path.of(context.parameters().text("gates").orElse(""));
    }

    @Override
    public void execute(Batch batch) {
        long begin = System.nanoTime();
        for (InferenceRequest request : batch.requests()) {
            if (request.isNullRequest()) {
                continue;
            }
            try {
                perform(request);
                if (model.decoupled()) {
                    sendAll(request);
                } else if (!action(request).equals("omit")) {
                    respond(request, begin);
                }
            } catch (BackendException e) {
                if (model.decoupled()) {
                    request.sender().fail(e);
                } else {
                    request.fail(e);
                }
            }
        }
    }

    private String action(InferenceRequest request) {
        return request.parameters().value(model.name()).orElse("") instanceof String text ? text : "";
    }

    private void perform(InferenceRequest request) {
        switch (action(request)) {
            case "fail" -> {
                if (!model.decoupled()) {
                    throw new BackendException(ErrorCode.INTERNAL, "the script fails");
                }
            }
            case "gate" -> pass(request);
            case "gate-fail" -> {
                pass(request);
                throw new BackendException(ErrorCode.INTERNAL, "the script fails");
            }
            case "cancel" -> {
                report(request, "open");
                await(request::isCancelled);
                throw new BackendException(ErrorCode.CANCELLED, "the script is cancelled");
            }
            default -> {}
        }
    }

    private void pass(InferenceRequest request) {
        Path open = report(request, "open");
        await(() -> Files.exists(open));
    }

    private Path report(InferenceRequest request, String end) {
        String name = request.id() + "." + model.name() + ".";
        try {
            Files.createFile(gates.resolve(name + "waiting"));
        } catch (IOException e) {
            throw new BackendException(ErrorCode.INTERNAL, "gate " + name, e);
        }
        return gates.resolve(name + end);
    }

    private void await(BooleanSupplier state) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
        while (!state.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                throw new BackendException(ErrorCode.INTERNAL, "the script waited for too long");
            }
            LockSupport.parkNanos(this, LOOK_NANOS);
        }
    }

    private void respond(InferenceRequest request, long begin) {
        InferenceResponse response = request.response();
        Tensor in = request.requireInput("INPUT0");
        Tensor second = request.input("INPUT1").orElse(null);
        Tensor out = response.allocate("OUTPUT0", DataType.FP32, in.shape());
        float sum = 0;
        for (long i = 0; i < in.shape().elementCount(); i++) {
            float value = at(in, i);
            sum += value;
            out.data().set(FLOAT, i * Float.BYTES, value + add + (second == null ? 0 : at(second, i)));
        }
        if (model.output("SUM").isPresent()) {
            floats(response, "SUM", sum(request, sum));
        }
        if (model.output("INFO").isPresent()) {
            inform(request, response);
        }
        if (action(request).equals("mark")) {
            response.parameter("sequence_id", 77);
            response.parameter("sequence_start", true);
            response.parameter("sequence_end", true);
        }
        if (model.output("TIMES").isPresent()) {
            Tensor times = response.allocate("TIMES", DataType.INT64, shape(2));
            times.data().set(LONG, 0, begin);
            times.data().set(LONG, Long.BYTES, System.nanoTime());
        }
    }

    private float sum(InferenceRequest request, float more) {
        Sequence position = request.sequence().orElseThrow();
        return sums.merge(position.id(), more, (before, add) -> position.start() ? add : before + add);
    }

    /** Reports the priority, the timeout and the position in a sequence, and apart whether there is a deadline. */
    private void inform(InferenceRequest request, InferenceResponse response) {
        Sequence position = request.sequence().orElse(null);
        floats(
                response,
                "INFO",
                (float) request.priority(),
                (float) request.timeoutMicros(),
                switch (position == null ? null : position.id()) {
                    case null -> 0;
                    case Sequence.Id.Numeric number -> number.value();
                    case Sequence.Id.Text text -> -text.value().length();
                },
                position != null && position.start() ? 1 : 0,
                position != null && position.end() ? 1 : 0);
        floats(response, "DEADLINE", request.deadlineNanos().isPresent() ? 1 : 0);
    }

    private void sendAll(InferenceRequest request) {
        ResponseSender sender = request.sender();
        int count = (int) at(request.requireInput("INPUT0"), 0);
        for (int i = 1; i <= count; i++) {
            InferenceResponse response = sender.newResponse();
            floats(response, "OUTPUT0", i + add);
            sender.send(response);
        }
        if (action(request).equals("fail")) {
            throw new BackendException(ErrorCode.INTERNAL, "the script fails");
        }
        sender.complete();
    }

    private void floats(InferenceResponse response, String output, float... values) {
        Tensor tensor = response.allocate(output, DataType.FP32, shape(values.length));
        for (int i = 0; i < values.length; i++) {
            tensor.data().set(FLOAT, (long) i * Float.BYTES, values[i]);
        }
    }

    private Shape shape(int elements) {
        return model.batches() ? Shape.of(1, elements) : Shape.of(elements);
    }

    private static float at(Tensor tensor, long index) {
        return tensor.data().get(FLOAT, index * Float.BYTES);
    }
}
