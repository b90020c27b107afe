package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.TensorLease;
import dev.nereid.api.call.CallChain;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Creates the requests of steps, and reads their responses. Nothing is copied. Static functions only. */
final class StepMessages {
    private StepMessages() {}

    /**
     * Creates the request of a step. It holds a reference to each value.
     *
     * @param callers the model versions that wait for it
     * @param settings the configuration of the step's model
     * @param onHost whether the step has to respond in memory of the host
     * @param nowNanos the time, from which the remaining timeout is computed
     */
    static InferRequest request(
            CheckedRequest ensemble,
            CallChain callers,
            DataFlow flow,
            StepExecution execution,
            ModelSettings settings,
            boolean onHost,
            long nowNanos) {
        StepPlan step = execution.step();
        List<InputTensor> inputs = new ArrayList<>(step.inputs().length);
        TensorValue.Mark mark = null;
        int batchSize = settings.batches() ? 1 : 0;
        for (int i = step.inputs().length - 1;
                i >= 0;
                i--) { // the first input decides about the batch, and about the sequence
            TensorValue value = flow.value(execution.ready(), step.inputTensors()[i]);
            mark = SequenceMarks.join(value.mark(), mark, step.model());
            Tensor tensor = value.tensor();
            if (tensor != null) {
                Tensor given = converted(settings, step.inputs()[i], value, tensor);
                inputs.addFirst(InputTensor.of(step.inputs()[i], given));
                if (settings.batches() && !isShapeTensor(settings, step.inputs()[i])) {
                    batchSize = batchSize(given);
                }
            }
        }
        execution.requested(mark, batchSize);
        RequestOptions options = options(ensemble, callers, mark, nowNanos);
        Runnable held = held(flow, execution.ready());
        InferRequest request = null;
        try {
            request = new InferRequest(
                    ModelRef.latest(step.model()),
                    ensemble.id(),
                    inputs,
                    onHost ? step.requestedOnHost() : step.requested(),
                    ensemble.parameters(),
                    options,
                    held);
            return request;
        } finally {
            if (request == null) {
                held.run();
            }
        }
    }

    /** Returns whether an input has no batch dimension, even if other inputs of the model have one. */
    private static boolean isShapeTensor(ModelSettings settings, String input) {
        return settings.input(input)
                .map(spec -> spec.is(TensorSpec.Trait.SHAPE_TENSOR))
                .orElse(false);
    }

    private static int batchSize(Tensor tensor) {
        return tensor.shape().rank() == 0 ? 1 : Math.clamp(tensor.shape().dim(0), 1, Integer.MAX_VALUE);
    }

    private static Tensor converted(ModelSettings settings, String input, TensorValue value, Tensor tensor) {
        TensorSpec spec = settings.input(input).orElse(null);
        if (spec == null || spec.is(TensorSpec.Trait.SHAPE_TENSOR)) {
            return tensor; // the check of the request reports an unknown input
        }
        Shape shape = EnsembleTensors.convert(spec.dims(), settings.batches(), value.batchSize(), tensor.shape());
        return shape.equals(tensor.shape()) ? tensor : tensor.withShape(shape);
    }

    /** Retains the values of a step; returns the action that releases them. */
    private static Runnable held(DataFlow flow, DataFlow.Ready ready) {
        int[] tensors = ready.step().tensors();
        TensorValue[] values = new TensorValue[tensors.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = flow.value(ready, tensors[i]);
            values[i].retain();
        }
        return () -> {
            for (TensorValue value : values) {
                value.release();
            }
        };
    }

    private static RequestOptions options(
            CheckedRequest ensemble, CallChain callers, TensorValue.@Nullable Mark mark, long nowNanos) {
        RequestOptions own = ensemble.options();
        return new RequestOptions(
                own.priority(),
                remaining(own.timeoutMicros(), nowNanos - ensemble.arrivedNanos()),
                own.deadlineNanos(),
                SequenceMarks.position(mark, own.sequence()),
                callers,
                own.callerOwnsInputs());
    }

    /** Returns the rest of a timeout, at least a microsecond: 0 would mean none. */
    private static long remaining(long timeoutMicros, long elapsedNanos) {
        if (timeoutMicros == 0) {
            return 0;
        }
        long elapsed = TimeUnit.NANOSECONDS.toMicros(Math.max(0, elapsedNanos));
        return Long.compareUnsigned(timeoutMicros, elapsed) <= 0 ? 1 : timeoutMicros - elapsed;
    }

    /** Reads the mapped outputs of a step's response, and retains them; absent where the response has none. */
    static TensorValue[] values(InferResponse response, StepExecution execution, TensorValue.@Nullable Mark mark) {
        StepPlan step = execution.step();
        TensorValue[] values = new TensorValue[step.outputs().length];
        boolean isRead = false;
        try {
            List<NamedTensor> outputs = response.outputs();
            for (int i = 0; i < outputs.size(); i++) {
                NamedTensor output = outputs.get(i);
                int place = step.outputIndex(output.name(), i);
                if (place >= 0) {
                    TensorLease lease = response.lease(i);
                    ReferenceCountedMemory memory = ReferenceCountedMemory.of(lease::close, null);
                    values[place] = new TensorValue(output.tensor(), memory, execution.batchSize(), mark);
                }
            }
            isRead = true;
        } finally {
            if (!isRead) {
                release(values);
            }
        }
        for (int i = 0; i < values.length; i++) {
            if (values[i] == null) {
                values[i] = TensorValue.absent(mark);
            }
        }
        return values;
    }

    private static void release(TensorValue[] values) {
        for (TensorValue value : values) {
            if (value != null) { // of an output that was read
                value.release();
            }
        }
    }
}
