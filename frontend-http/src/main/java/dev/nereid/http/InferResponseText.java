package dev.nereid.http;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.Map;

/** Writes the JSON text of an inference's response. Confined to one thread, as what it writes to is. */
final class InferResponseText {
    private final JsonWriter json;

    /** Writes to a text that was not begun. */
    InferResponseText(JsonWriter json) {
        this.json = json;
    }

    /**
     * Writes the text.
     *
     * @return how many bytes of binary outputs are to follow it
     * @throws dev.nereid.api.InferenceException if an output cannot be written
     * @throws InternalError if an output lies in shared memory that is not there any more
     */
    long write(InferResponse response, RequestedOutputs outputs) {
        json.raw("{");
        if (!response.id().isEmpty()) {
            json.raw("\"id\":").string(response.id()).raw(",");
        }
        json.raw("\"model_name\":").string(response.model());
        json.raw(",\"model_version\":\"").integer(response.version()).raw("\"");
        if (!response.parameters().isEmpty()) {
            writeParameters(response.parameters());
        }
        json.raw(",\"outputs\":[");
        long binaryBytes = 0;
        List<NamedTensor> tensors = response.outputs();
        for (int i = 0; i < tensors.size(); i++) {
            json.raw(i == 0 ? "{\"name\":" : ",{\"name\":");
            binaryBytes +=
                    writeOutput(tensors.get(i), outputs.form(tensors.get(i).name()));
        }
        json.raw("]}");
        return binaryBytes;
    }

    private long writeOutput(NamedTensor output, RequestedOutputs.Form form) {
        Tensor tensor = output.tensor();
        if (!tensor.place().isHost() && form != RequestedOutputs.Form.SHARED) {
            throw JsonFields.internal("output '" + output.name() + "' lies in memory of a device");
        }
        json.string(output.name()).raw(",\"datatype\":\"").raw(tensor.type().name());
        json.raw("\",\"shape\":[");
        for (int i = 0; i < tensor.shape().rank(); i++) {
            json.raw(i == 0 ? "" : ",").integer(tensor.shape().dim(i));
        }
        json.raw("]");
        switch (form) {
            case SHARED -> json.raw("}");
            case BINARY ->
                json.raw(",\"parameters\":{\"binary_data_size\":")
                        .integer(tensor.byteSize())
                        .raw("}}");
            case JSON -> {
                json.raw(",\"data\":");
                JsonTensorWriter.write(json, output);
                json.raw("}");
            }
        }
        return form == RequestedOutputs.Form.BINARY ? tensor.byteSize() : 0;
    }

    private void writeParameters(Map<String, ParameterValue> parameters) {
        json.raw(",\"parameters\":");
        String separator = "{";
        for (Map.Entry<String, ParameterValue> parameter : parameters.entrySet()) {
            json.raw(separator).string(parameter.getKey()).raw(":");
            switch (parameter.getValue()) {
                case ParameterValue.Bool bool -> json.raw(Boolean.toString(bool.value()));
                case ParameterValue.Int number -> json.integer(number.value());
                case ParameterValue.Real number -> json.real(number.value());
                case ParameterValue.Text text -> json.string(text.value());
            }
            separator = ",";
        }
        json.raw("}");
    }
}
