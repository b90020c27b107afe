package dev.nereid.http.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.Quoted;
import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.json.JsonErrors;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonReader;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** Reads the bodies of index, load and unload requests. Static functions only. */
final class ControlRequests {
    private static final String FILE_PREFIX = "file:";
    private static final String FORCE = "force";

    private ControlRequests() {}

    /** Reads whether an index lists ready models only. */
    static boolean readyOnly(MemorySegment body) {
        if (body.byteSize() == 0) {
            return false;
        }
        JsonReader json = new JsonReader(body);
        int ready = JsonFields.find(json, JsonFields.root(json), "ready");
        if (ready == JsonFields.ABSENT) {
            return false;
        }
        json.moveTo(ready);
        byte first = json.peek();
        if (first != 't' && first != 'f') {
            throw JsonFields.invalid("Invalid value for 'ready': expected a boolean");
        }
        return first == 't';
    }

    /** Reads a load request: configuration, files, and whether it is forced. */
    static ModelControl.Load load(String model, MemorySegment body) {
        Optional<String> config = Optional.empty();
        Map<String, ByteBuffer> files = new HashMap<>();
        boolean isForced = false;
        if (body.byteSize() > 0) {
            JsonReader json = new JsonReader(body);
            for (boolean more = enterParameters(json); more; more = json.nextMember()) {
                String name = json.key();
                RequestLimits.checkCount("files", files.size(), RequestLimits.MAX_PARTS);
                if (name.equals(FORCE)) {
                    isForced = readForce(json);
                } else if (json.peek() != '"') {
                    throw JsonErrors.value(
                            JsonErrors.NOT_STRING, "parameters." + Quoted.text(name), "a string", json.describeValue());
                } else if (name.equals("config")) {
                    config = Optional.of(json.readString());
                } else if (name.startsWith(FILE_PREFIX)) {
                    files.put(name.substring(FILE_PREFIX.length()), readFile(json, name));
                } else {
                    throw JsonErrors.value(
                            "unexpected error on creating Triton parameter",
                            "parameters",
                            "config, file:<path> or force",
                            "'" + Quoted.text(name) + "'");
                }
            }
        }
        return new ModelControl.Load(model, config, files, isForced);
    }

    /** Reads whether models that only this model depends on are unloaded too. */
    static boolean unloadDependents(MemorySegment body) {
        if (body.byteSize() == 0) {
            return false;
        }
        JsonReader json = new JsonReader(body);
        int parameters = JsonFields.find(json, JsonFields.root(json), "parameters");
        int dependents = JsonFields.find(json, parameters, "unload_dependents");
        return dependents != JsonFields.ABSENT && JsonFields.bool(json, dependents, "unload_dependents");
    }

    /** Moves to the first parameter; returns whether there is one. */
    private static boolean enterParameters(JsonReader json) {
        int parameters = JsonFields.find(json, JsonFields.root(json), "parameters");
        if (parameters == JsonFields.ABSENT) {
            return false;
        }
        json.moveTo(parameters);
        if (json.peek() != '{') {
            throw JsonErrors.value(JsonErrors.NO_MEMBERS, "parameters", "an object", json.describeValue());
        }
        return json.firstMember();
    }

    /** Reads a parameter that the reference server does not know, hence with a separate error. */
    private static boolean readForce(JsonReader json) {
        byte first = json.peek();
        if (first != 't' && first != 'f') {
            throw JsonFields.invalid(
                    "Invalid value for '" + FORCE + "': expected true or false, got " + json.describeValue());
        }
        json.skipValue();
        return first == 't';
    }

    private static ByteBuffer readFile(JsonReader json, String name) {
        try {
            return JsonFields.readBase64(json).asReadOnlyBuffer();
        } catch (IllegalArgumentException e) {
            throw unreadable(name);
        }
    }

    private static InferenceException unreadable(String name) {
        return JsonFields.invalid("Unable to parse '" + Quoted.text(name) + "': not a text in base64");
    }
}
