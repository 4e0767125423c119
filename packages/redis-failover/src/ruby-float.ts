/**
 * A number as Ruby writes a Float: `1.0`, `0.000412`, `9.1e-05`. Ruby and JavaScript take the same
 * digits, the fewest that name the number. They differ in when they use an exponent, and in how it
 * looks.
 * @param value finite
 */
export function rubyFloat(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-4 && size < 1e15)) {
    const text = `${value}`;
    return text.includes('.') ? text : `${text}.0`;
  }
  const [digits = '', exponent = ''] = value.toExponential().split('e');
  const mantissa = digits.includes('.') ? digits : `${digits}.0`;
  return `${mantissa}e${exponent.slice(0, 1)}${exponent.slice(1).padStart(2, '0')}`;
}
