package dev.nereid.benchmarks.gpu;

import static dev.nereid.benchmarks.gpu.CheckList.require;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.benchmarks.gpu.ClientMemory.ClientProcess;
import dev.nereid.cuda.memory.CudaGpus;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Base64;

/** Device memory of another process, opened in this one. Confined to one thread. */
final class SharingChecks {
    private static final MemoryPlace PLACE = new MemoryPlace(MemoryPlace.Kind.GPU, 0);

    private final CudaGpus gpus;
    private final String classPath;

    SharingChecks(CudaGpus gpus, String classPath) {
        this.gpus = gpus;
        this.classPath = classPath;
    }

    void run(CheckList list) {
        list.check("memory of another process, both directions", this::bothDirections);
        list.check("a handle is checked against the memory's size", this::bounds);
    }

    private String bothDirections() throws Exception {
        try (ClientProcess client = new ClientProcess(classPath);
                Arena arena = Arena.ofShared()) {
            require(client.ask("fill").equals("filled"), "not filled");
            DeviceMemory memory = gpus.memory(PLACE).orElseThrow();
            ByteBuffer handle = ByteBuffer.wrap(Base64.getDecoder().decode(client.handle()));
            GpuAccess.Opened opened = gpus.open(handle, 0, 2 * ClientMemory.BYTES);
            GpuAccess.Opened reopened = gpus.open(handle, 0, ClientMemory.BYTES);
            require(reopened.segment().address() == opened.segment().address(), "opened twice at two addresses");
            reopened.close();
            MemorySegment numbers = arena.allocate(ClientMemory.BYTES);
            memory.copyToHost(opened.segment().asSlice(0, ClientMemory.BYTES), numbers);
            for (int i = 0; i < ClientMemory.COUNT; i++) {
                float read = numbers.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                require(read == i, "number " + i + " is " + read);
                numbers.setAtIndex(ValueLayout.JAVA_FLOAT, i, read + 7);
            }
            memory.copyFromHost(numbers, opened.segment().asSlice(ClientMemory.BYTES, ClientMemory.BYTES));
            String found = client.ask("compare 7");
            opened.close();
            require(found.equals("equal"), found);
            return 2 * ClientMemory.BYTES + " bytes, opened twice at one address";
        }
    }

    private String bounds() throws Exception {
        try (ClientProcess client = new ClientProcess(classPath)) {
            byte[] handle = Base64.getDecoder().decode(client.handle());
            String tooLarge = refusal(handle, 1L << 40);
            require(tooLarge.contains("expected: at most"), tooLarge);
            String zeros = refusal(new byte[handle.length], 1);
            require(zeros.contains("the handle opens no memory"), zeros);
            return tooLarge;
        }
    }

    private String refusal(byte[] handle, long byteSize) {
        try {
            gpus.open(ByteBuffer.wrap(handle), 0, byteSize).close();
            return "opened with " + byteSize + " bytes";
        } catch (InferenceException e) {
            return String.valueOf(e.getMessage());
        }
    }
}
