package dev.nereid.http.infer;

import dev.nereid.api.OutputTarget;
import dev.nereid.api.Quoted;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.json.JsonErrors;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonNumber;
import dev.nereid.http.json.JsonReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Reads the {@code outputs} of a request. Confined to the thread that reads the request. */
final class RequestedOutputsReader {
    private static final String[] MEMBERS = {"name", "parameters"};
    private static final String[] PARAMETERS = {"shared_memory_region", "classification", "binary_data"};

    private final JsonReader json;
    private final String id;
    private final SharedTensorReader shared;
    private final JsonNumber number = new JsonNumber();
    private final DistinctNames names = new DistinctNames();
    private final List<RequestedOutput> requested = new ArrayList<>(2);
    private final List<RequestedOutputs.Format> formats = new ArrayList<>(2);

    /** Creates the reader of a request's outputs in a text with checked syntax; the id is for errors. */
    RequestedOutputsReader(JsonReader json, String id, SharedTensorReader shared) {
        this.json = json;
        this.id = id;
        this.shared = shared;
    }

    /**
     * Reads the outputs.
     *
     * @param at the offset of the array
     * @param binaryByDefault whether all outputs are binary if none is named
     * @throws dev.nereid.api.InferenceException if they are invalid
     */
    RequestedOutputs read(int at, boolean binaryByDefault) {
        boolean more = JsonFields.enterArray(json, at, "outputs");
        for (; more; more = json.nextElement()) {
            int element = json.position();
            RequestLimits.checkCount("outputs", requested.size(), RequestLimits.MAX_PARTS);
            json.path().enter("outputs", requested.size());
            readOutput(element);
            json.moveTo(element);
            json.skipValue();
        }
        return requested.isEmpty()
                ? RequestedOutputs.all(binaryByDefault)
                : RequestedOutputs.of(Collections.unmodifiableList(requested), Collections.unmodifiableList(formats));
    }

    private void readOutput(int element) {
        int[] members = new int[MEMBERS.length];
        JsonFields.find(json, element, MEMBERS, members);
        int[] parameters = new int[PARAMETERS.length];
        JsonFields.find(json, members[1], PARAMETERS, parameters);
        boolean isShared = parameters[0] != JsonFields.ABSENT;
        if (isShared) {
            checkSharedMemoryOnly(parameters[1], parameters[2]);
        }
        String name = JsonFields.string(json, members[0], "name");
        if (!names.add(name)) {
            throw JsonFields.invalid(
                    Quoted.requestPrefix(id) + "output '" + Quoted.text(name) + "' already exists in request");
        }
        long classes = readClasses(parameters[1]);
        if (isShared) {
            TensorBuffer part = shared.read(members[1]);
            requested.add(RequestedOutput.into(name, new OutputTarget(part.segment(), part.place())));
            formats.add(RequestedOutputs.Format.SHARED);
            return;
        }
        boolean binary = parameters[2] != JsonFields.ABSENT && JsonFields.bool(json, parameters[2], "binary_data");
        requested.add(classes == 0 ? RequestedOutput.of(name) : RequestedOutput.classified(name, classes));
        formats.add(binary ? RequestedOutputs.Format.BINARY : RequestedOutputs.Format.JSON);
    }

    /** Checks that an output in shared memory is not requested in another format too. */
    private void checkSharedMemoryOnly(int classification, int binaryData) {
        if (classification != JsonFields.ABSENT) {
            throw JsonFields.invalid("Output can't set both 'shared_memory_region' and 'classification'");
        }
        if (binaryData == JsonFields.ABSENT) {
            return;
        }
        json.moveTo(binaryData);
        byte first = json.peek();
        if (first != 't' && first != 'f') {
            throw JsonErrors.value(
                    "Unable to set 'binary_data': " + JsonErrors.NOT_BOOLEAN,
                    json.path().to("binary_data"),
                    "true or false",
                    json.describeValue());
        } else if (first == 't') {
            throw JsonFields.invalid("Output can't set both 'shared_memory_region' and 'binary_data'");
        }
    }

    private long readClasses(int at) {
        if (at == JsonFields.ABSENT) {
            return 0;
        }
        json.moveTo(at);
        if (!json.readNumber(number) || !number.isUnsigned()) {
            json.moveTo(at);
            throw JsonErrors.value(
                    "Unable to set 'classification': " + JsonErrors.NOT_UNSIGNED,
                    json.path().to("classification"),
                    JsonErrors.expectedFor(JsonErrors.NOT_UNSIGNED),
                    json.describeValue());
        }
        // A number beyond the signed range means all classes.
        return number.bits() < 0 ? Long.MAX_VALUE : number.bits();
    }
}
