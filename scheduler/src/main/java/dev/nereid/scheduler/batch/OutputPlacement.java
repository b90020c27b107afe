package dev.nereid.scheduler.batch;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.OutputTarget;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;

/**
 * Moves complete outputs to where their clients want them. Static functions only.
 *
 * <p>An output is moved to the target that its client passed for it. An output without a target is moved out of client
 * memory, which only the backend may read, and out of memory of devices unless its client takes it in any place. Client
 * memory on the host is accessed by Java code alone, so a copy on the host lies between it and a device.
 */
final class OutputPlacement {
    private OutputPlacement() {}

    /** An output in its shape for the client. */
    record Output(NamedTensor tensor, ReferenceCountedMemory memory) {
        String name() {
            return tensor.name();
        }

        Tensor content() {
            return tensor.tensor();
        }

        boolean contains(Tensor part) {
            return content().data().asOverlappingSlice(part.data()).isPresent();
        }

        private Output in(MemorySegment data, MemoryPlace place, ReferenceCountedMemory owner) {
            Tensor moved = Tensor.of(content().type(), content().shape(), data, place);
            return new Output(new NamedTensor(name(), moved), owner);
        }
    }

    /** Creates a reference to memory of a client, which is not freed. */
    static ReferenceCountedMemory clientMemory() {
        return ReferenceCountedMemory.of(() -> {}, null);
    }

    /**
     * Moves an output, unless it lies in its place. Waits for its fence, unless the output may be pending. Takes over
     * the reference to its memory, even if it throws.
     *
     * @param request the request, which says where its client wants the output
     * @param deliversPending whether an output that stays on its device may be pending
     * @return the output in its place, with a reference to its memory
     * @throws BackendException if it does not fit the target, there is no memory, or the device failed
     */
    static Output place(ModelScope model, CheckedRequest request, Output output, boolean deliversPending) {
        boolean stays = stays(request, output.name(), output.content());
        if (stays && deliversPending) {
            return output;
        }
        Output complete = output.content().fence().isPresent() ? awaited(output) : output;
        if (stays) {
            return complete;
        }
        OutputTarget target = request.target(output.name());
        return target == null ? onHost(model, complete) : at(model, complete, target);
    }

    /** Returns whether an output that a request wants stays on its device. */
    static boolean stays(CheckedRequest request, String output, Tensor content) {
        MemoryPlace place = content.place();
        return !place.isHost() && request.target(output) == null && request.takesOutput(output, place);
    }

    static boolean mayBePending(CheckedRequest request, String output, Tensor content) {
        return content.fence().isEmpty() || !request.requestsOutput(output) || stays(request, output, content);
    }

    private static Output awaited(Output output) {
        boolean complete = false;
        try {
            DeviceCopies.awaitContent(output.content());
            complete = true;
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        } finally {
            if (!complete) {
                DeviceCopies.releaseUnlessPending(output.content(), output.memory());
            }
        }
        return output.in(output.content().data(), output.content().place(), output.memory());
    }

    private static Output onHost(ModelScope model, Output output) {
        Tensor tensor = output.content();
        boolean host = tensor.place().isHost();
        if (host && !ClientMemory.isClientMemory(tensor.data())) {
            return output;
        }
        try {
            TensorBuffer copy =
                    host ? copyOfClientMemory(model, tensor) : OutputChecks.copyToHost(model, output.name(), tensor);
            return output.in(copy.segment(), MemoryPlace.HOST, ReferenceCountedMemory.of(copy));
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        } finally {
            output.memory().release();
        }
    }

    private static TensorBuffer copyOfClientMemory(ModelScope model, Tensor tensor) {
        return DeviceCopies.filled(
                model.memory().allocate(tensor.byteSize()), data -> ClientMemory.copy(tensor.data(), data));
    }

    private static Output at(ModelScope model, Output output, OutputTarget target) {
        Tensor tensor = output.content();
        try {
            OutputChecks.checkTarget(output.name(), target.memory(), tensor.byteSize());
            MemorySegment destination = target.memory().asSlice(0, tensor.byteSize());
            if (destination.address() != tensor.data().address()) {
                copy(model, output, destination, target.place());
            }
            return output.in(destination, target.place(), clientMemory());
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        } finally {
            output.memory().release();
        }
    }

    private static void copy(ModelScope model, Output output, MemorySegment target, MemoryPlace place) {
        Tensor tensor = output.content();
        if (!place.isHost()) {
            DeviceMemory device = OutputChecks.device(model, output.name(), place);
            DeviceCopies.toDevice(tensor, device, target, model.memory());
        } else if (tensor.place().isHost()) {
            ClientMemory.copy(tensor.data(), target);
        } else {
            try (TensorBuffer between = OutputChecks.copyToHost(model, output.name(), tensor)) {
                ClientMemory.copy(between.segment(), target);
            }
        }
    }
}
