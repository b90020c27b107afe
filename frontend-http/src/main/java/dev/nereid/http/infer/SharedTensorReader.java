package dev.nereid.http.infer;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonNumber;
import dev.nereid.http.json.JsonReader;

/** Reads the shared memory parameters of a tensor and leases its region. Confined to the reading thread. */
final class SharedTensorReader {
    private static final String[] REGION_MEMBERS = {
        "shared_memory_region", "shared_memory_offset", "shared_memory_byte_size"
    };

    private final JsonReader json;
    private final RequestMemory memory;
    private final JsonNumber number = new JsonNumber();

    SharedTensorReader(JsonReader json, RequestMemory memory) {
        this.json = json;
        this.memory = memory;
    }

    /**
     * Leases the place of a tensor.
     *
     * @param parameters the offset of the tensor's parameters, which name a region
     * @return the place; its content may change at any time, and reading it may fail
     * @throws dev.nereid.api.InferenceException if no such place is registered
     */
    TensorBuffer read(int parameters) {
        int[] members = new int[REGION_MEMBERS.length];
        JsonFields.find(json, parameters, REGION_MEMBERS, members);
        String region = JsonFields.string(json, members[0], REGION_MEMBERS[0]);
        long offset = readUnsigned(members[1], REGION_MEMBERS[1]);
        long byteSize = readUnsigned(members[2], REGION_MEMBERS[2]);
        return memory.lease(region, offset, byteSize);
    }

    private long readUnsigned(int at, String name) {
        if (at == JsonFields.ABSENT) {
            return 0;
        }
        json.moveTo(at);
        return JsonFields.readUnsigned(json, number, name);
    }
}
