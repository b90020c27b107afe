package dev.nereid.http;

import java.lang.foreign.MemorySegment;

/** Reads where in shared memory a tensor lies, and takes the place for the call. Confined to the thread that reads. */
final class SharedTensorReader {
    private static final String[] PLACE = {"shared_memory_region", "shared_memory_offset", "shared_memory_byte_size"};

    private final JsonReader json;
    private final CallMemory memory;
    private final JsonNumber number = new JsonNumber();

    SharedTensorReader(JsonReader json, CallMemory memory) {
        this.json = json;
        this.memory = memory;
    }

    /**
     * Reads the place of a tensor.
     *
     * @param parameters the offset of the tensor's parameters, which name a region
     * @return the place; its content may change at any time, and reading it may fail
     * @throws dev.nereid.api.InferenceException if the client shares no such place
     */
    MemorySegment read(int parameters) {
        int[] members = new int[PLACE.length];
        JsonFields.find(json, parameters, PLACE, members);
        String region = JsonFields.string(json, members[0], PLACE[0]);
        long offset = readUnsigned(members[1], PLACE[1]);
        long byteSize = readUnsigned(members[2], PLACE[2]);
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
