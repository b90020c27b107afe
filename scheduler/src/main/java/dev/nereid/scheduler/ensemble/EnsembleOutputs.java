package dev.nereid.scheduler.ensemble;

import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;

/** Puts values of tensors into responses of an ensemble. Nothing is copied. Static functions only. */
final class EnsembleOutputs {
    private EnsembleOutputs() {}

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
        Shape shape =
                BatchConversion.convert(spec.backendDims(), settings.batches(), value.batchSize(), tensor.shape());
        return shape.equals(tensor.shape()) ? tensor : tensor.withShape(shape);
    }
}
