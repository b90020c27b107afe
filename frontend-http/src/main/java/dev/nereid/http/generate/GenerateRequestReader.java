package dev.nereid.http.generate;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.InputMetadata;
import dev.nereid.http.json.JsonErrors;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonNumber;
import dev.nereid.http.json.JsonParameterValues;
import dev.nereid.http.json.JsonReader;
import dev.nereid.http.json.JsonTensorReader;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads the body of a {@code generate} request into inputs and parameters. Confined to the thread that reads the
 * request.
 *
 * <p>Members of the member {@code parameters} count like those beside it. Shapes are derived from the model's.
 */
final class GenerateRequestReader {
    private static final String NESTED = "parameters";

    private final ModelMetadata model;
    private final MemorySegment body;
    private final JsonReader json;
    private final RequestMemory memory;
    private final JsonTensorReader tensors;
    private final JsonNumber number = new JsonNumber();
    private final Map<String, TensorSpec> specs = new HashMap<>();
    private final List<InputTensor> inputs = new ArrayList<>();
    private final Map<String, ParameterValue> parameters = new LinkedHashMap<>();

    /** Creates the reader of a request with inputs of at most {@code maxTensorBytes}. */
    GenerateRequestReader(ModelMetadata model, MemorySegment body, RequestMemory memory, long maxTensorBytes) {
        this.model = model;
        this.body = body;
        this.json = new JsonReader(body);
        this.memory = memory;
        this.tensors = new JsonTensorReader(maxTensorBytes);
        model.inputs().forEach(input -> specs.put(input.name(), input));
    }

    /**
     * Reads the request; its memory frees the inputs.
     *
     * @param ref the model as received
     * @param headers the headers that become parameters
     * @throws InferenceException if the request is invalid, or a header has a reserved name
     */
    InferRequest read(ModelRef ref, ForwardedHeaders headers) {
        int root = JsonFields.root(json);
        int id = JsonFields.find(json, root, "id");
        String name = id == JsonFields.ABSENT ? "" : JsonFields.string(json, id, "id");
        if (specs.containsKey(NESTED)) {
            throw JsonFields.invalid("Keyword '" + NESTED + "' for nested schema also given as input tensor name");
        }
        readMembers(root, true);
        return new InferRequest(
                ref, name, inputs, List.of(), headers.addTo(parameters), RequestOptions.DEFAULT, memory);
    }

    private void readMembers(int at, boolean outermost) {
        json.moveTo(at);
        if (json.peek() != '{') {
            throw JsonErrors.value(
                    outermost
                            ? JsonErrors.NO_MEMBERS
                            : "Expected JSON object for keyword: '" + NESTED + "': " + JsonErrors.NOT_OBJECT,
                    outermost ? "the request" : NESTED,
                    "an object",
                    json.describeValue());
        }
        for (boolean more = json.firstMember(); more; more = json.nextMember()) {
            int value = json.position();
            String name = json.key();
            TensorSpec input = specs.get(name);
            RequestLimits.checkCount("members", inputs.size() + parameters.size(), RequestLimits.MAX_PARTS);
            if (outermost && name.equals(NESTED)) {
                readNested(value);
            } else if (input != null) {
                inputs.add(readInput(input, value));
            } else {
                parameters.putIfAbsent(name, JsonParameterValues.read(json, number, name));
            }
            json.moveTo(value);
            json.skipValue();
        }
    }

    private void readNested(int at) {
        json.moveTo(at);
        boolean isObject = json.peek() == '{';
        try {
            readMembers(at, false);
        } catch (InferenceException e) {
            if (!isObject || e.retryAfter().isPresent()) {
                throw e;
            }
            throw InferenceException.refusal(
                    e.code(), e.refusalCause(), "Converting keyword: '" + NESTED + "': " + e.publicMessage());
        }
    }

    private InputTensor readInput(TensorSpec input, int at) {
        json.moveTo(at);
        boolean isArray = json.peek() == '[';
        long[] dims = fillShape(input, isArray ? count(at) : 1);
        InputMetadata metadata = new InputMetadata(input.name(), input.type().name(), dims);
        JsonReader values = isArray ? json : new JsonReader(inBrackets(at));
        values.path().enterInput(input.name());
        MemorySegment data = tensors.read(values, isArray ? at : 0, metadata, memory);
        values.path().leave();
        // The reference server reports no shape for an empty input.
        long[] shape = data.byteSize() == 0 ? new long[0] : dims;
        return InputTensor.of(input.name(), input.type().name(), shape, data, MemoryPlace.HOST);
    }

    /** Counts the elements of the outermost array; others may be nested in it. */
    private long count(int at) {
        json.moveTo(at);
        long count = 0;
        for (boolean more = json.firstElement(); more; more = json.nextElement()) {
            json.skipValue();
            count++;
        }
        return count;
    }

    /** Returns the dimensions of {@code count} elements. The last variable dimension is what the fixed ones leave. */
    private long[] fillShape(TensorSpec input, long count) {
        boolean batched = model.maxBatchSize() > 0 && !input.is(TensorSpec.Trait.SHAPE_TENSOR);
        long[] dims = (batched ? input.dims().prepend(Shape.VARIABLE) : input.dims()).toArray();
        long rest = count;
        for (long dim : dims) {
            if (dim != Shape.VARIABLE) {
                if (dim == 0 || rest % dim != 0) {
                    throw shapeless(input);
                }
                rest /= dim;
            }
        }
        for (int i = dims.length - 1; i >= 0; i--) {
            if (dims[i] == Shape.VARIABLE) {
                dims[i] = rest;
                rest = 1;
            }
        }
        if (rest > 1) {
            throw shapeless(input);
        }
        return dims;
    }

    private static InferenceException shapeless(TensorSpec input) {
        return JsonFields.invalid(
                "The schema can not convert input '" + input.name() + "' to tensor with proper shape");
    }

    /** Returns the text of a single value as that of an array with one element. */
    private MemorySegment inBrackets(int at) {
        json.moveTo(at);
        json.skipValue();
        int length = json.position() - at;
        MemorySegment text = memory.allocate(length + 2L);
        text.set(ValueLayout.JAVA_BYTE, 0, (byte) '[');
        MemorySegment.copy(body, at, text, 1, length);
        text.set(ValueLayout.JAVA_BYTE, length + 1L, (byte) ']');
        return text;
    }
}
