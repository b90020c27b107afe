package dev.nereid.server.request;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.SequenceIds;
import dev.nereid.api.call.CallChain;
import dev.nereid.repository.ModelKey;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.PaddedModel;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Checks requests against the configuration of a model version and converts them for its scheduler. Immutable, safe for
 * use by any thread; called on event loops.
 *
 * <p>A valid request costs a few comparisons for each tensor; only the content of byte strings is walked over. If a
 * request is wrong in several ways, the error is the one that the reference server reports, which checks inputs last to
 * first.
 */
public final class RequestChecks {
    /** Names are compared one by one up to this number, which is faster than hashing. */
    private static final int MAX_LINEAR_NAMES = 8;

    private static final int UNKNOWN = -1;

    private final String model;
    private final ModelVersion modelVersion;
    private final int maxBatchSize;
    private final InputCheck[] inputs;
    private final int requiredInputs;

    /** The places of the inputs of a request that has all, in configuration order. Never changed. */
    private final int[] inOrder;

    private final Names inputNames;
    private final Names outputNames;
    private final RequestOutputs allOutputs;

    /** The control input with the id of the sequence; {@code null} if the model has none. */
    private final @Nullable ControlInput sequenceIdControl;

    private RequestChecks(ModelSettings settings, Map<String, Shape> padded) {
        model = settings.name();
        modelVersion = new ModelVersion(model, settings.version());
        maxBatchSize = settings.maxBatchSize();
        inputs = settings.inputs().stream()
                .map(spec -> new InputCheck(model, settings.batches(), spec, padded.get(spec.name())))
                .toArray(InputCheck[]::new);
        requiredInputs =
                (int) Arrays.stream(inputs).filter(input -> !input.isOptional()).count();
        inOrder = IntStream.range(0, inputs.length).toArray();
        inputNames = Names.of(settings.inputs());
        outputNames = Names.of(settings.outputs());
        allOutputs = RequestOutputs.all(outputNames.all());
        sequenceIdControl = settings.sequenceBatching()
                .flatMap(batching -> batching.controls().stream()
                        .filter(control -> control.kind() == ControlInput.Kind.SEQUENCE_CORRID)
                        .findFirst())
                .orElse(null);
    }

    /**
     * Prepares the checks of a model version with padded inputs.
     *
     * @param settings its completed, checked configuration
     * @param padded as of {@link PaddedModel#paddedInputs()}
     * @throws InferenceException if padding changes the number of dimensions of an input
     */
    public static RequestChecks forModel(ModelSettings settings, Map<String, Shape> padded) {
        return new RequestChecks(settings, padded);
    }

    /**
     * Prepares the checks of a loaded model version.
     *
     * @param settings its completed, checked configuration
     * @param model the model, which may be a {@link PaddedModel}
     * @throws InferenceException if padding changes the number of dimensions of an input
     */
    public static RequestChecks forModel(ModelSettings settings, Model model) {
        return forModel(settings, model instanceof PaddedModel padded ? padded.paddedInputs() : Map.of());
    }

    /**
     * Returns the dimensions of the memory of an input, which are the dimensions that a client gives, unless the input
     * is padded.
     *
     * @param dims the dimensions that the backend sees, without batch dimension
     */
    public long[] storedDims(String input, long[] dims) {
        for (InputCheck check : inputs) {
            if (check.name().equals(input)) {
                return check.storedDims(dims, 0);
            }
        }
        return dims;
    }

    /**
     * Checks a request. The memory stays with the caller if the request is refused, and passes to the result otherwise.
     *
     * @param request a request to this model version; the version that it names is ignored
     * @param arrivedNanos the time at which the server received it
     * @return the request as schedulers take it, sharing the memory of the inputs
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the request does not fit the configuration
     */
    public CheckedRequest check(InferRequest request, long arrivedNanos) {
        Optional<Sequence> sequence = request.options().sequence();
        if (sequence.isPresent()) { // also of ensembles, models and programs that send requests
            SequenceIds.check(sequence.get().id());
        }
        String id = request.id();
        int[] slots = inputSlots(id, request.inputs());
        RequestOutputs outputs = outputs(id, request.outputs());
        checkCount(id, request.inputs(), slots);
        long batch = batch(id, request.inputs(), slots);
        NamedTensor[] tensors = tensors(id, request.inputs(), slots, batch);
        ControlInput sequenceId = sequenceIdControl;
        if (sequenceId != null) {
            checkSequenceId(request, sequenceId);
        }
        return new CheckedRequest(
                modelVersion,
                id,
                new RequestInputs(tensors, (int) Math.max(batch, 1), request.release()),
                outputs,
                request.parameters(),
                request.options(),
                arrivedNanos);
    }

    private void checkSequenceId(InferRequest request, ControlInput control) {
        Optional<Sequence> sequence = request.options().sequence();
        if (sequence.isEmpty()) {
            return;
        }
        boolean isText = sequence.get().id() instanceof Sequence.Id.Text;
        if (isText != (control.type() == DataType.BYTES)) {
            throw RequestErrors.sequenceIdType(
                    request.id(), control.name(), isText ? DataType.BYTES : DataType.UINT64, model, control.type());
        }
    }

    /** Returns the configured index of each input, or {@link #UNKNOWN}. */
    private int[] inputSlots(String id, List<InputTensor> received) {
        if (areInOrder(received)) {
            return inOrder;
        }
        int[] slots = new int[received.size()];
        boolean[] taken = new boolean[inputs.length];
        boolean areKnown = true;
        for (int i = 0; i < slots.length; i++) {
            String name = received.get(i).name();
            int slot = inputNames.indexOf(name, i);
            slots[i] = slot;
            if (slot == UNKNOWN) {
                areKnown = false;
            } else if (taken[slot]) {
                throw RequestErrors.duplicateInput(id, name);
            } else {
                taken[slot] = true;
            }
        }
        if (!areKnown) {
            Set<String> seen = new HashSet<>();
            for (InputTensor input : received) {
                if (!seen.add(input.name())) {
                    throw RequestErrors.duplicateInput(id, input.name());
                }
            }
        }
        return slots;
    }

    /** Returns whether all inputs are present, in the order of the configuration. Most clients send them so. */
    private boolean areInOrder(List<InputTensor> received) {
        boolean areInOrder = received.size() == inputs.length;
        for (int i = 0; areInOrder && i < inputs.length; i++) {
            areInOrder = received.get(i).name().equals(inputs[i].name());
        }
        return areInOrder;
    }

    private RequestOutputs outputs(String id, List<RequestedOutput> requested) {
        return requested.isEmpty() ? allOutputs : RequestOutputs.of(names(id, requested), requested);
    }

    /** Returns the names of the requested outputs in the order of the configuration. */
    private List<String> names(String id, List<RequestedOutput> requested) {
        boolean[] taken = new boolean[outputNames.all().size()];
        int count = 0;
        for (int i = 0; i < requested.size(); i++) {
            int slot = outputNames.indexOf(requested.get(i).name(), i);
            if (slot != UNKNOWN && !taken[slot]) {
                taken[slot] = true;
                count++;
            }
        }
        if (count < requested.size()) {
            throw wrongOutputs(id, requested);
        }
        if (count == taken.length) {
            return outputNames.all();
        }
        List<String> outputs = new ArrayList<>(count);
        for (int slot = 0; slot < taken.length; slot++) {
            if (taken[slot]) {
                outputs.add(outputNames.all().get(slot));
            }
        }
        return outputs;
    }

    /** Reports duplicates first; of unknown names, the first in alphabetical order. */
    private InferenceException wrongOutputs(String id, List<RequestedOutput> requested) {
        Set<String> seen = new HashSet<>();
        for (RequestedOutput output : requested) {
            if (!seen.add(output.name())) {
                return RequestErrors.duplicateOutput(id, output.name());
            }
        }
        String unknown = requested.stream()
                .map(RequestedOutput::name)
                .filter(output -> outputNames.indexOf(output, 0) == UNKNOWN)
                .min(String::compareTo)
                .orElseThrow();
        return RequestErrors.unknownOutput(unknown, model);
    }

    private void checkCount(String id, List<InputTensor> received, int[] slots) {
        boolean fits = slots.length >= requiredInputs && slots.length <= inputs.length;
        if (fits && (requiredInputs == inputs.length || hasAllRequired(slots))) {
            return;
        }
        List<String> names = received.stream().map(InputTensor::name).toList();
        Set<String> present = Set.copyOf(names);
        List<String> missing = Arrays.stream(inputs)
                .filter(input -> !input.isOptional() && !present.contains(input.name()))
                .map(InputCheck::name)
                .toList();
        throw RequestErrors.inputCount(id, model, names, missing, requiredInputs, inputs.length);
    }

    /**
     * Returns whether all required inputs are present. With optional inputs the number alone is not enough; an unknown
     * name is reported by its own error later.
     */
    private boolean hasAllRequired(int[] slots) {
        int required = 0;
        for (int slot : slots) {
            if (slot == UNKNOWN) {
                return true;
            }
            required += inputs[slot].isOptional() ? 0 : 1;
        }
        return required == requiredInputs;
    }

    /** Returns the first dimension that the inputs share. It is 1 if none of them has a batch dimension. */
    private long batch(String id, List<InputTensor> received, int[] slots) {
        long batch = 1;
        boolean isKnown = false;
        for (int i = slots.length - 1; i >= 0; i--) {
            InputTensor input = received.get(i);
            if (slots[i] == UNKNOWN) {
                throw RequestErrors.unknownInput(input.name(), model);
            }
            if (!inputs[slots[i]].hasBatchDimension()) {
                continue;
            }
            if (input.rank() == 0) {
                throw RequestErrors.noBatchDimension(id, input.name(), model);
            }
            if (isKnown && input.dim(0) != batch) {
                throw RequestErrors.differingBatch(id, input.name(), model);
            }
            batch = input.dim(0);
            isKnown = true;
        }
        if (isKnown && (batch < 0 || batch > maxBatchSize)) {
            throw RequestErrors.batchTooLarge(id, model, maxBatchSize);
        }
        return batch;
    }

    private NamedTensor[] tensors(String id, List<InputTensor> received, int[] slots, long batch) {
        NamedTensor[] tensors = new NamedTensor[inputs.length];
        for (int i = slots.length - 1; i >= 0; i--) {
            tensors[slots[i]] = inputs[slots[i]].check(id, received.get(i), batch);
        }
        if (slots.length == tensors.length) {
            return tensors;
        }
        NamedTensor[] present = new NamedTensor[slots.length];
        int count = 0;
        for (NamedTensor tensor : tensors) {
            if (tensor != null) {
                present[count++] = tensor;
            }
        }
        return present;
    }

    /**
     * Names of a model's inputs or outputs, with fast lookup of their positions.
     *
     * @param all the names in the order of the configuration
     * @param places the place of each; empty if there are few
     */
    private record Names(List<String> all, Map<String, Integer> places) {
        static Names of(List<TensorSpec> specs) {
            List<String> all = specs.stream().map(TensorSpec::name).toList();
            Map<String, Integer> places = new HashMap<>();
            for (int i = 0; all.size() > MAX_LINEAR_NAMES && i < all.size(); i++) {
                places.put(all.get(i), i);
            }
            return new Names(all, Map.copyOf(places));
        }

        /**
         * Finds the index of a name.
         *
         * @param guess the index that is tried first
         */
        int indexOf(String name, int guess) {
            if (guess < all.size() && all.get(guess).equals(name)) {
                return guess;
            }
            return places.isEmpty() ? all.indexOf(name) : places.getOrDefault(name, UNKNOWN);
        }
    }

    /**
     * Checks that a chain of models that wait for each other may become longer.
     *
     * @param callers the models that wait for the request
     * @param key the key of the model that is to get the request
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} with the path if it is too long
     */
    public static void checkCallers(CallChain callers, String key) {
        if (callers.models().size() >= CallChain.MAX_MODELS) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "request to model '" + ModelKey.name(key) + "' on behalf of more than " + CallChain.MAX_MODELS
                            + " others: " + callers.path(ModelKey.name(key))
                            + " (expected: models that do not send requests in a circle)");
        }
    }
}
