package dev.nereid.scheduler.ensemble;

import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.NamedTensors;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.util.List;

/**
 * Reads the inputs of a request to an ensemble as values of tensors, and puts such values into its responses. Nothing is
 * copied. Static functions only.
 */
final class EnsembleTensors {
    private EnsembleTensors() {}

    /**
     * Returns the value of each input, in the order of the configuration. The memory of the request is freed when all of
     * them are released; the request is retained until then.
     */
    static TensorValue[] read(ModelSettings settings, ScheduledRequest request) {
        List<TensorSpec> specs = settings.inputs();
        RequestInputs inputs = request.checked().inputs();
        request.retain();
        request.lendInputs(); // a step may read them after its response, as may a request that it sent
        ReferenceCountedMemory all = ReferenceCountedMemory.of(
                () -> {
                    request.freeUnusedInputs();
                    request.release();
                },
                null);
        TensorValue[] values = new TensorValue[specs.size()];
        for (int i = 0; i < values.length; i++) {
            Tensor tensor = NamedTensors.find(inputs, specs.get(i).name());
            if (tensor == null) {
                values[i] = TensorValue.absent(null);
            } else {
                all.retain();
                boolean batches = settings.batches() && !specs.get(i).is(TensorSpec.Trait.SHAPE_TENSOR);
                ReferenceCountedMemory memory = ReferenceCountedMemory.of(() -> {}, all);
                values[i] = new TensorValue(tensor, memory, batches ? inputs.batchSize() : 0, null);
            }
        }
        all.release();
        return values;
    }

    /**
     * Puts the requested outputs of an iteration into a response, which holds references to them.
     *
     * @throws BackendException if an output does not fit the configuration; the caller discards the response
     */
    static void put(
            InferenceResponse response,
            EnsemblePlan plan,
            OutputSelection selection,
            DataFlow flow,
            Iteration iteration,
            CheckedRequest request) {
        TensorValue.Mark mark = null;
        for (int tensor : selection.outputs()) {
            TensorValue value = flow.output(iteration, tensor);
            mark = mark == null ? value.mark() : mark;
            Tensor content = value.tensor();
            if (content != null) {
                TensorSpec spec = plan.output(tensor);
                Tensor given = converted(plan.settings(), spec, value, content);
                value.retain();
                response.put(spec.name(), given, value::release);
            }
        }
        SequenceMarks.put(
                response, SequenceMarks.position(mark, request.options().sequence()));
    }

    private static Tensor converted(ModelSettings settings, TensorSpec spec, TensorValue value, Tensor tensor) {
        if (spec.is(TensorSpec.Trait.SHAPE_TENSOR)) {
            return tensor;
        }
        Shape shape = convert(spec.backendDims(), settings.batches(), value.batchSize(), tensor.shape());
        return shape.equals(tensor.shape()) ? tensor : tensor.withShape(shape);
    }

    /**
     * Returns the shape in which a model gets a tensor.
     *
     * @param dims the configured dimensions, without batch dimension
     * @param batches whether the model has a batch dimension
     * @param batchSize the size of the batch dimension of the tensor; 0 if it has none
     * @return the shape with a batch dimension of 1 in front, or without it, or as it is
     */
    static Shape convert(Shape dims, boolean batches, int batchSize, Shape actual) {
        if (batches == (batchSize != 0)) {
            return actual;
        }
        boolean fits = dims.accepts(actual);
        if (batches) {
            return fits ? actual.prepend(1) : actual;
        }
        return !fits && batchSize == 1 && actual.rank() > 0 ? actual.dropFirst() : actual;
    }
}
