/**
 * The backend SPI: all types that a backend of Nereid compiles against.
 *
 * <p>A Java pre- or postprocessing step is a function of {@code dev.nereid.spi.function}, one class with one method. A
 * backend for a whole framework implements the first four of the six types to read first: {@link BackendProvider},
 * {@link Backend}, {@link Model} and {@link ModelInstance}. Work arrives as a {@link Batch} of {@link Tensor}s.
 *
 * <table>
 * <caption>The types by their role</caption>
 * <tr><th>role</th><th>types</th></tr>
 * <tr><td>backends implement</td><td>
 * {@link BackendProvider}, {@link Backend}, {@link Model}, {@link ModelInstance}, {@link PaddedModel},
 * {@link BatchingStrategy}, {@link FormingBatch}, {@link ModelResponseObserver}, {@link Fence}</td></tr>
 * <tr><td>the server implements: contexts</td><td>
 * {@link BackendContext}, {@link ModelContext}, {@link InstanceContext}, {@link DeviceInstanceContext},
 * {@link Parameters}, {@link Metrics}, {@link Tracing}, {@link AllocatedMemory}</td></tr>
 * <tr><td>the server implements: work</td><td>
 * {@link Batch}, {@link InferenceRequest}, {@link RequestView}, {@link InferenceResponse}, {@link ResponseSender},
 * {@link DeferredExecution}, {@link SequenceState}, {@link CancelHook}</td></tr>
 * <tr><td>the server implements: requests to models</td><td>
 * {@link ModelClient}, {@link ModelRequest}, {@link ModelResponse}</td></tr>
 * <tr><td>data: tensors and errors</td><td>
 * {@link Tensor}, {@link DataType}, {@link Shape}, {@link MemoryPlace}, {@link BackendException},
 * {@link ErrorCode}</td></tr>
 * <tr><td>data: what a backend says</td><td>
 * {@link BackendTraits}, {@link ModelCompletion}, {@link TensorSpec}, {@link MemoryUsage},
 * {@link ResponseReport}</td></tr>
 * <tr><td>data: what a configuration says</td><td>
 * {@link ModelSettings}, {@link ModelSettingsBuilder}, {@link BatchInput}, {@link BatchOutput},
 * {@link SequenceBatching}, {@link ControlInput}, {@link StateSpec}</td></tr>
 * <tr><td>data: devices and sequences</td><td>
 * {@link Device}, {@link Sequence}, {@link SequenceEnd}</td></tr>
 * </table>
 *
 * <p>Interfaces marked <em>implemented by the server</em> may gain methods in a minor version of the SPI; interfaces
 * marked <em>implemented by backends</em> gain {@code default} methods only. A backend's tests use the fakes of the
 * testkit instead of implementing the server's interfaces. Enums and sealed types are open: a backend must handle what
 * it does not know, with a {@code default}, by refusing the model or the request. Members marked {@link Incubating} may change.
 */
@NullMarked
package dev.nereid.spi;

import org.jspecify.annotations.NullMarked;
