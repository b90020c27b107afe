package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.Bindings.Binding;
import dev.nereid.backend.tensorrt.Bindings.Role;
import dev.nereid.backend.tensorrt.PreparedExecution.Copy;
import dev.nereid.backend.tensorrt.runtime.ExecutionContext;
import dev.nereid.cuda.CompletionThread;
import dev.nereid.cuda.EventFence;
import dev.nereid.cuda.GpuException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import org.jspecify.annotations.Nullable;

/**
 * Executes batches on one GPU, with an execution context for each of its optimization profiles. Confined to the
 * instance's thread; completions run on a separate thread.
 *
 * <p>Copies of inputs and executions follow one another on one stream, copies of outputs on another, which waits for the
 * execution. So the next batch is prepared, copied and executed while the outputs of the one before are copied. A batch
 * ends when the GPU has done all of its work; outputs that stay on the GPU are passed on before that, with their fence.
 */
final class TensorRtInstance implements ModelInstance {
    private static final MemoryPlace PINNED = new MemoryPlace(MemoryPlace.Kind.PINNED, 0);

    private final Bindings bindings;
    private final ProfileChoice profiles;
    private final InstanceResources resources;
    private final MemoryPlace device;
    private final InputReader inputs;
    private final boolean graphs;
    private final CompletionThread completions;
    private final BlockingQueue<BufferSet> idle = new LinkedBlockingQueue<>();

    /** Creates the instance, which owns the resources from now on; {@code graphs} captures executions as graphs. */
    TensorRtInstance(
            String name, Bindings bindings, ProfileChoice profiles, InstanceResources resources, boolean graphs) {
        this.bindings = bindings;
        this.profiles = profiles;
        this.resources = resources;
        // Graphs hold addresses and values of shape tensors. States change their addresses, shape tensors their values.
        this.graphs = graphs
                && !bindings.hasStates()
                && bindings.inputs().stream().noneMatch(input -> input.tensor().isShapeTensor());
        device = new MemoryPlace(MemoryPlace.Kind.GPU, resources.gpu().gpu());
        inputs = new InputReader(bindings, device, this.graphs);
        idle.addAll(resources.buffers());
        completions = new CompletionThread(name + "-completions");
    }

    @Override
    public void execute(Batch batch) {
        BufferSet buffers = takeBuffers();
        boolean handedOver = false;
        try {
            PreparedExecution prepared = new PreparedExecution();
            EventFence fence = start(batch, buffers, prepared);
            DeferredExecution execution = batch.defer();
            if (prepared.passedOn) {
                completions.add(fence, execution::complete, _ -> idle.add(buffers));
            } else {
                completions.add(fence, failure -> end(batch, execution, prepared, buffers, failure));
            }
            handedOver = true;
        } finally {
            if (!handedOver) {
                idle.add(buffers);
            }
        }
    }

    private void end(
            Batch batch,
            DeferredExecution execution,
            PreparedExecution prepared,
            BufferSet buffers,
            @Nullable BackendException failure) {
        if (failure == null) {
            prepared.copyShapeTensors(buffers);
            idle.add(buffers);
            batch.outputsComputed();
            execution.complete();
        } else {
            idle.add(buffers);
            execution.fail(failure);
        }
    }

    private BufferSet takeBuffers() {
        try {
            return idle.take(); // the completions return them
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw TensorRtErrors.invalid("execution: interrupted");
        }
    }

    private EventFence start(Batch batch, BufferSet buffers, PreparedExecution execution) {
        inputs.read(batch, buffers, execution);
        int profile = profiles.choose(execution.limited);
        ExecutionContext context = resources.contexts().get(profile);
        try {
            resources.makeCurrent();
            for (Binding binding : bindings.inputs()) {
                context.setShape(binding.name(), execution.shape(binding));
                context.setAddress(
                        binding.name(), execution.inPlace.getOrDefault(binding.name(), buffers.address(binding)));
            }
            prepareOutputs(batch, context, buffers, execution);
            return enqueue(batch, context, profile, buffers, execution);
        } catch (GpuException e) {
            resources.awaitStreams();
            throw TensorRtErrors.unavailable(e);
        } catch (RuntimeException | Error e) {
            resources.awaitStreams(); // earlier work may still use the batch's memory
            throw e;
        }
    }

    private void prepareOutputs(Batch batch, ExecutionContext context, BufferSet buffers, PreparedExecution execution) {
        Set<String> requested = batch.requestedOutputs();
        boolean allOnDevice = !requested.isEmpty() && !bindings.hasStates();
        for (Binding binding : bindings.outputs()) {
            Shape shape = context.shape(binding.name());
            if (!shape.isConcrete()) {
                throw TensorRtErrors.unsupported("output '" + binding.name() + "': shape " + shape
                        + " depends on the values of inputs (expected: on their shapes alone)");
            }
            long address = buffers.address(binding);
            if (binding.role() == Role.STATE) {
                Tensor state = state(batch, binding, shape);
                if (state.place().equals(device)) {
                    address = state.data().address();
                    execution.inPlace.put(binding.name(), address);
                } else {
                    execution.inputs.add(new Copy(binding, state)); // what the engine leaves as it is
                    execution.outputs.add(new Copy(binding, state));
                }
            }
            context.setAddress(binding.name(), address);
            if (requested.contains(binding.name())) {
                Tensor output = allocate(batch, binding, shape);
                allOnDevice &= output.place().equals(device);
                if (isWrittenInPlace(binding, output)) {
                    context.setAddress(binding.name(), output.data().address());
                } else {
                    execution.outputs.add(new Copy(binding, output));
                }
            }
        }
        execution.passedOn = allOnDevice;
    }

    /** Allocates the next value of a state: on the device, or on the host if no memory is left there. */
    private Tensor state(Batch batch, Binding binding, Shape shape) {
        SequenceState state = batch.state(binding.name());
        try {
            return state.allocate(binding.type(), shape, device);
        } catch (BackendException e) {
            if (e.code() != ErrorCode.UNAVAILABLE) {
                throw e;
            }
            return state.allocate(binding.type(), shape);
        }
    }

    /** Allocates an output: on the device if it stays there and memory is left, else in pinned memory. */
    private Tensor allocate(Batch batch, Binding binding, Shape shape) {
        if (!binding.tensor().isShapeTensor() && batch.takesOutput(binding.name(), device)) {
            try {
                return batch.allocate(binding.name(), binding.type(), shape, device);
            } catch (BackendException e) {
                if (e.code() != ErrorCode.UNAVAILABLE && e.code() != ErrorCode.UNSUPPORTED) {
                    throw e;
                }
            }
        }
        return batch.allocate(binding.name(), binding.type(), shape, PINNED);
    }

    /** Returns whether the engine writes an output itself. Graphs and states have fixed addresses instead. */
    private boolean isWrittenInPlace(Binding binding, Tensor output) {
        return output.place().equals(device) && output.byteSize() > 0 && !graphs && binding.role() != Role.STATE;
    }

    private EventFence enqueue(
            Batch batch, ExecutionContext context, int profile, BufferSet buffers, PreparedExecution execution) {
        long stream = resources.stream();
        for (Fence awaited : execution.awaited) {
            resources.gpu().await(awaited, stream);
        }
        resources.gpu().run(driver -> {
            for (Copy input : execution.inputs) {
                long from = input.tensor().data().address();
                long size = input.tensor().byteSize();
                if (size == 0) {
                    continue;
                }
                if (input.tensor().place().equals(device)) {
                    driver.copy(from, buffers.address(input.binding()), size, stream);
                } else {
                    driver.copyFromHost(from, buffers.address(input.binding()), size, stream);
                }
            }
        });
        batch.inputsRead();
        run(context, profile, buffers, execution);
        EventFence fence = copyOutputs(buffers, execution);
        try {
            if (execution.passedOn) {
                for (String output : batch.requestedOutputs()) {
                    batch.fence(output, fence);
                }
            }
            return fence;
        } catch (RuntimeException | Error e) {
            fence.release();
            throw e;
        }
    }

    private void run(ExecutionContext context, int profile, BufferSet buffers, PreparedExecution execution) {
        long stream = resources.stream();
        OptionalLong graph = OptionalLong.empty();
        if (graphs) {
            List<Shape> shapes = new ArrayList<>(execution.shapes.values());
            GraphCache.Key key = new GraphCache.Key(profile, buffers.number(), shapes);
            graph = resources.graphs().find(key, stream, () -> context.enqueue(stream));
        }
        if (graph.isPresent()) {
            long executable = graph.getAsLong();
            resources.gpu().run(driver -> driver.launchGraph(executable, stream));
        } else {
            context.enqueue(stream);
        }
    }

    /** Copies the outputs when the execution has ended. Returns the end of the copies. */
    private EventFence copyOutputs(BufferSet buffers, PreparedExecution execution) {
        long stream = resources.outputStream();
        EventFence executed = resources.events().record(resources.stream());
        try {
            resources.gpu().await(executed, stream);
            resources.gpu().run(driver -> {
                for (Copy output : execution.outputs) {
                    long source = Optional.ofNullable(
                                    execution.inPlace.get(output.binding().name()))
                            .orElseGet(() -> buffers.address(output.binding()));
                    // TensorRT writes shape tensors on the host.
                    if (output.tensor().byteSize() > 0
                            && !output.binding().tensor().isShapeTensor()) {
                        long target = output.tensor().data().address();
                        if (output.tensor().place().equals(device)) {
                            driver.copy(source, target, output.tensor().byteSize(), stream);
                        } else {
                            driver.copyToHost(source, target, output.tensor().byteSize(), stream);
                        }
                    }
                }
            });
            return resources.events().record(stream);
        } finally {
            executed.release();
        }
    }

    @Override
    public CompletionStage<Void> checkReady() {
        return resources
                .gpu()
                .failure()
                .map(failure -> CompletableFuture.<Void>failedStage(
                        new BackendException(ErrorCode.UNAVAILABLE, String.valueOf(failure.getMessage()))))
                .orElseGet(() -> CompletableFuture.completedStage(null));
    }

    @Override
    public void close() {
        completions.close();
        resources.close();
    }
}
