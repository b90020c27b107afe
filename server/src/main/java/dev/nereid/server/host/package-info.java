/**
 * Where the threads of instances run: the host policies of the command line and of model configurations. Starting
 * points: {@link dev.nereid.server.host.HostPolicies}, {@link dev.nereid.server.host.HostSetting}.
 */
@NullMarked
package dev.nereid.server.host;

import org.jspecify.annotations.NullMarked;
