package dev.nereid.server.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.Quoted;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.util.List;

/**
 * Creates the exceptions of invalid requests, with the texts of the reference server. Clients match on the texts, so
 * they are the reference server's to the letter. Most texts start with the request's id; texts about unknown names do
 * not.
 */
final class RequestErrors {
    private static final String BATCH_NOTE = "NOTE: Setting a non-zero max_batch_size in the model config requires a"
            + " batch dimension to be prepended to each input shape. If you want to specify the full shape including"
            + " the batch dim in your input dims config, try setting max_batch_size to zero. See the model"
            + " configuration docs for more info on max_batch_size.";

    private RequestErrors() {}

    static InferenceException duplicateInput(String id, String input) {
        return of(id, "input '" + Quoted.text(input) + "' already exists in request");
    }

    static InferenceException duplicateOutput(String id, String output) {
        return of(id, "output '" + Quoted.text(output) + "' already exists in request");
    }

    /** The type of a sequence id does not fit the control input that has it. */
    static InferenceException sequenceIdType(
            String id, String control, DataType actual, String model, DataType expected) {
        return of(
                id,
                "sequence batching control '" + control + "' data-type is '" + actual + "', but model '" + model
                        + "' expects '" + expected + "'");
    }

    static InferenceException unknownInput(String input, String model) {
        return invalid("unexpected inference input '" + Quoted.text(input) + "' for model '" + model + "'");
    }

    static InferenceException unknownOutput(String output, String model) {
        return invalid("unexpected inference output '" + Quoted.text(output) + "' for model '" + model + "'");
    }

    /**
     * Reports missing or surplus inputs.
     *
     * @param received the names of the request's inputs
     * @param missing the names of the inputs that the request lacks
     * @param required the minimum of inputs
     */
    static InferenceException inputCount(
            String id, String model, List<String> received, List<String> missing, int required, int maximum) {
        String expected = required == maximum
                ? "expected " + maximum + " inputs"
                : "expected number of inputs between " + required + " and " + maximum;
        // The reference prints the given names last to first, and half a bracket where nothing is missing.
        return of(
                id,
                expected + " but got " + received.size() + " inputs for model '" + model + "'. Got input(s) ["
                        + Quoted.names(received.reversed()) + "], but missing required input(s) "
                        + (missing.isEmpty() ? "]" : "[" + Quoted.names(missing) + "]")
                        + ". Please provide all required input(s).");
    }

    static InferenceException noBatchDimension(String id, String input, String model) {
        return of(
                id,
                "input '" + Quoted.text(input) + "' has no shape but model requires batch dimension for '" + model
                        + "'");
    }

    static InferenceException differingBatch(String id, String input, String model) {
        return of(id, "input '" + Quoted.text(input) + "' batch size does not match other inputs for '" + model + "'");
    }

    static InferenceException batchTooLarge(String id, String model, int maxBatchSize) {
        return of(id, "inference request batch-size must be <= " + maxBatchSize + " for '" + model + "'");
    }

    static InferenceException emptyBatch(String id, String model) {
        return of(id, "inference request batch-size must be >= 1 for '" + model + "'");
    }

    static InferenceException dataType(String id, InputTensor input, String model, DataType expected) {
        String claimed = DataType.ofName(input.datatype()).isPresent() ? input.datatype() : "<invalid>";
        return of(
                id,
                "inference input '" + Quoted.text(input.name()) + "' data-type is '" + claimed + "', but model '"
                        + model + "' expects '" + expected + "'");
    }

    static InferenceException unspecifiedDimension(String id, InputTensor input, String model) {
        return of(
                id,
                "All input dimensions should be specified for input '" + Quoted.text(input.name()) + "' for model '"
                        + model + "', got " + Quoted.dims(input.dims()));
    }

    static InferenceException shape(String id, InputTensor input, String model, Shape dims, boolean batches) {
        return of(
                id,
                "unexpected shape for input '" + Quoted.text(input.name()) + "' for model '" + model + "'. Expected "
                        + (batches ? dims.prepend(Shape.VARIABLE) : dims) + ", got " + Quoted.dims(input.dims()) + ". "
                        + (batches ? BATCH_NOTE : ""));
    }

    static InferenceException byteSize(String id, String input, String model, long expected, long actual) {
        return of(
                id,
                "input byte size mismatch for input '" + Quoted.text(input) + "' for model '" + model + "'. Expected "
                        + expected + ", got " + actual);
    }

    static InferenceException cutLength(String id, String input, String model, long available) {
        return of(
                id,
                "incomplete string length indicator for inference input '" + Quoted.text(input) + "' for model '"
                        + model
                        + "', expecting 4 bytes but only " + available + " bytes available. Please make sure the"
                        + " string length indicator is in one buffer.");
    }

    static InferenceException cutString(String id, String input, String model, long length, long available) {
        return of(
                id,
                "incomplete string data for inference input '" + Quoted.text(input) + "' for model '" + model
                        + "', expecting string of length " + length + " but only " + available + " bytes available.");
    }

    static InferenceException tooManyStrings(String id, String input, String model, long expected) {
        return of(
                id,
                "unexpected number of string elements " + (expected + 1) + " for inference input '" + Quoted.text(input)
                        + "' for model '" + model + "', expecting " + expected);
    }

    static InferenceException tooFewStrings(String id, String input, String model, long expected, long actual) {
        return of(
                id,
                "expected " + expected + " string elements for inference input '" + Quoted.text(input) + "' for model '"
                        + model + "', got " + actual);
    }

    private static InferenceException of(String id, String message) {
        return invalid(Quoted.requestPrefix(id) + message);
    }

    private static InferenceException invalid(String message) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
