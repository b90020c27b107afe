package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonParameterValues;
import dev.nereid.http.json.JsonTensorWriter;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.Tensor;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** Writes the JSON part of an inference response. Confined to one thread, as its writer is. */
final class InferResponseJson {
    private static final byte[] ID = ascii("\"id\":");
    private static final byte[] MODEL = ascii("\"model_name\":");
    private static final byte[] VERSION = ascii(",\"model_version\":\"");
    private static final byte[] OUTPUTS = ascii(",\"outputs\":[");
    private static final byte[] NAME = ascii("{\"name\":");
    private static final byte[] DATATYPE = ascii(",\"datatype\":\"");
    private static final byte[] SHAPE = ascii("\",\"shape\":[");
    private static final byte[] BINARY_SIZE = ascii("],\"parameters\":{\"binary_data_size\":");

    private final JsonWriter json;

    InferResponseJson(JsonWriter json) {
        this.json = json;
    }

    /**
     * Writes the text.
     *
     * @return the number of bytes of binary outputs that must follow
     * @throws dev.nereid.api.InferenceException if an output cannot be written
     */
    long write(InferResponse response, RequestedOutputs outputs) {
        json.raw('{');
        if (!response.id().isEmpty()) {
            json.raw(ID).string(response.id()).raw(',');
        }
        json.raw(MODEL).string(response.model());
        json.raw(VERSION).integer(response.version()).raw('"');
        if (!response.parameters().isEmpty()) {
            writeParameters(response.parameters());
        }
        json.raw(OUTPUTS);
        long binaryBytes = 0;
        List<NamedTensor> tensors = response.outputs();
        for (int i = 0; i < tensors.size(); i++) {
            if (i > 0) {
                json.raw(',');
            }
            binaryBytes +=
                    writeOutput(tensors.get(i), outputs.format(tensors.get(i).name()));
        }
        json.raw(']').raw('}');
        return binaryBytes;
    }

    private long writeOutput(NamedTensor output, RequestedOutputs.Format format) {
        Tensor tensor = output.tensor();
        if (!tensor.place().isHost() && format != RequestedOutputs.Format.SHARED) {
            throw JsonFields.internal("output '" + output.name() + "' lies in memory of a device");
        }
        json.raw(NAME).string(output.name());
        json.raw(DATATYPE).raw(tensor.type().name()).raw(SHAPE);
        for (int i = 0; i < tensor.shape().rank(); i++) {
            if (i > 0) {
                json.raw(',');
            }
            json.integer(tensor.shape().dim(i));
        }
        switch (format) {
            case SHARED -> json.raw(']').raw('}');
            case BINARY ->
                json.raw(BINARY_SIZE).integer(tensor.byteSize()).raw('}').raw('}');
            case JSON -> {
                json.raw("],\"data\":");
                JsonTensorWriter.write(json, output);
                json.raw('}');
            }
        }
        return format == RequestedOutputs.Format.BINARY ? tensor.byteSize() : 0;
    }

    private void writeParameters(Map<String, ParameterValue> parameters) {
        json.raw(",\"parameters\":");
        String separator = "{";
        for (Map.Entry<String, ParameterValue> parameter : parameters.entrySet()) {
            json.raw(separator).string(parameter.getKey()).raw(":");
            JsonParameterValues.write(json, parameter.getValue());
            separator = ",";
        }
        json.raw("}");
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
